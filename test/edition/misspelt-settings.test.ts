/**
 * Every process names the BATON_ variables that no process reads, or refuses to start because of
 * them.
 */
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";

const misspelt = { BATON_QUEUE_ITEMS: "200", BATON_LEASES_MS: "1" };
const said =
  "no process of Baton reads BATON_QUEUE_ITEMS (did you mean BATON_QUEUE_LIMIT?), BATON_LEASES_MS (did you mean BATON_LEASE_MS?)";
/**
 * Variables without a fault: settings of other roles, empty values, and variables of Kubernetes.
 */
const others = {
  BATON_QUEUE_ITEMS: "",
  BATON_LEASES_MS: "",
  BATON_WORKERS: "3",
  BATON_ADMIN_TOKEN: "0123456789abcdef",
  BATON_PUBLISH: "127.0.0.1",
  BATON_GATEWAY_SERVICE_HOST: "10.0.0.1",
  BATON_GATEWAY_PORT: "tcp://10.0.0.1:8000",
};

describe("a fleet with misspelt settings", () => {
  const served = useFleet({ gateways: 1, jobs: 1, workers: 1, models: ["simple"], env: misspelt, direct: true });

  it("names them once in each process's log, with the nearest there is", () => {
    const { gateways, jobs, workers } = served.fleet;
    for (const member of [...gateways.map(({ member }) => member), ...jobs, ...workers]) {
      const lines = member.lives.flatMap(({ lines }) => lines).filter(({ text }) => text.includes("BATON_QUEUE_ITEMS"));
      expect(lines.map(({ fields }) => [fields["level"], fields["msg"]])).toEqual([[40, said]]);
    }
  });

  it.each([
    ["bundled/gateway/main.js", "gateway listening"],
    ["bundled/gateway/jobs.js", "jobs ready"],
    ["worker/supervisor.js", "worker ready"],
  ])("keeps %s from starting where settings are strict, and nothing else does", async (entry, ready) => {
    const strict = { BATON_STRICT_SETTINGS: "true", BATON_HTTP_PORT: "0" };
    const refused = served.fleet.launch(entry, strict);
    expect(await refused.exited).toEqual({ code: 78, signal: null });
    expect(refused.lines.map(({ text }) => text)).toEqual([`settings: ${said}`]);
    const started = served.fleet.launch(entry, { ...strict, ...others });
    await started.waitForMessage(ready);
  });
});
