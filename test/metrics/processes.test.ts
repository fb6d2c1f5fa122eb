/** Where each process shows its metrics, who may read them, and how Prometheus finds them all. */
import { createServer, type AddressInfo } from "node:net";
import { once } from "node:events";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { scopes } from "../../gateway/auth/owner/scopes.js";
import { keyedEnv, useFolder, useKeys } from "../auth/keyed.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { until } from "../support/until.js";
import { metricsOf, scrape } from "./scrape.js";

const folder = useFolder();
const TOKEN = "a-token-for-prometheus";
const tokenFile = join(folder, "metrics.token");
writeFileSync(tokenFile, `${TOKEN}\n`, { mode: 0o600 });
const withToken = { authorization: `Bearer ${TOKEN}` };
/** On all addresses, so that each process asks for the token. */
const shown = { BATON_METRICS_PORT: "0", BATON_METRICS_HOST: "0.0.0.0", BATON_METRICS_TOKEN_FILE: tokenFile };
const running = useFleet({
  models: ["simple"],
  jobs: 1,
  env: { ...keyedEnv(folder), BATON_AUTH_OPEN: "health,metadata", ...shown },
});
const { make } = useKeys(running);

const members = () => [
  ...running.fleet.gateways.map(({ member }) => ({ role: "gateway", member })),
  ...running.fleet.jobs.map((member) => ({ role: "jobs", member })),
  ...running.fleet.workers.map((member) => ({ role: "worker", member })),
];
const statusOf = async (url: string, headers: Record<string, string> = {}): Promise<number> => {
  const answer = await fetch(url, { headers });
  await answer.arrayBuffer();
  return answer.status;
};

interface Target {
  readonly targets: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

describe("the metrics of a process that other machines reach", () => {
  it("need the token, or at a gateway an operator's key", async () => {
    const operator = await make({ scopes });
    const other = await make();
    for (const { role, member } of members()) {
      const url = await metricsOf(member);
      const statuses = [
        await statusOf(url),
        await statusOf(url, { authorization: "Bearer another" }),
        await statusOf(url, withToken),
        await statusOf(url, operator.headers),
        await statusOf(url, other.headers),
      ];
      expect([role, statuses]).toEqual([role, [401, 401, 200, role === "gateway" ? 200 : 401, 401]]);
    }
  });

  it("are found by the token at every gateway, as Prometheus asks", async () => {
    const path = `${running.url}/v2/fleet/targets`;
    const read = async (headers: Record<string, string>) =>
      (await (await fetch(path, { headers })).json()) as readonly Target[];
    await until(async () => (await read(withToken)).length === 3);
    const found = await read(withToken);
    expect(found.map(({ labels }) => labels["baton_role"]).toSorted((a = "", b = "") => a.localeCompare(b))).toEqual([
      "gateway",
      "jobs",
      "worker",
    ]);
    for (const { targets } of found) {
      const [target = ""] = targets;
      expect(target).toMatch(/^127\.0\.0\.1:\d+$/);
      const page = await scrape(`http://${target}/metrics`, withToken);
      expect(page.value("process_start_time_seconds")).toBeGreaterThan(0);
    }
    const operator = await make({ scopes });
    const [other, fleet] = [await make(), `${running.url}/v2/fleet`];
    expect(await statusOf(path, operator.headers)).toBe(200);
    expect(await statusOf(path, other.headers)).toBe(403);
    expect(await statusOf(path)).toBe(401);
    // The token opens nothing else.
    expect(await statusOf(fleet, withToken)).toBe(401);
    const { workers, gateways } = (await (await fetch(fleet, { headers: operator.headers })).json()) as Record<
      string,
      readonly { metrics?: string }[]
    >;
    const shownAt = [...(workers ?? []), ...(gateways ?? [])].map(({ metrics }) => metrics);
    expect(found.flatMap(({ targets }) => targets)).toEqual(expect.arrayContaining(shownAt));
  });

  it("are there while Redis and NATS are away", async () => {
    const urls = await Promise.all(members().map(({ member }) => metricsOf(member)));
    const { gatewayRedis, workerRedis, nats } = running.fleet.lines;
    for (const line of [gatewayRedis, workerRedis, nats]) line.blackHole("toServer", "toClient");
    try {
      for (const url of urls) expect(await statusOf(url, withToken)).toBe(200);
    } finally {
      for (const line of [gatewayRedis, workerRedis, nats]) line.heal();
    }
  });
});

describe("a process", () => {
  const refusal = async (entry: string, env: Readonly<Record<string, string>>) => {
    const process = running.fleet.launch(entry, { BATON_AUTH: "off", BATON_HTTP_PORT: "0", ...env });
    const { code } = await process.exited;
    return { code, text: process.tail() };
  };

  it.each(["bundled/gateway/main.js", "bundled/gateway/jobs.js", "bundled/worker/main.js"])(
    "does not show its metrics to other machines without a token: %s",
    async (entry) => {
      const { code, text } = await refusal(entry, { BATON_METRICS_TOKEN_FILE: "" });
      expect([code, text]).toEqual([78, expect.stringContaining("BATON_METRICS_TOKEN_FILE is not set")]);
    },
  );

  it("does not start with a port that is taken, or a token that others may write", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    const local = { BATON_METRICS_HOST: "127.0.0.1" };
    const entry = "bundled/worker/main.js";
    const one = await refusal(entry, { ...local, BATON_METRICS_PORT: String(port) });
    taken.close();
    expect([one.code, one.text]).toEqual([78, expect.stringContaining("another program has that port")]);
    const open = join(folder, "open.token");
    writeFileSync(open, TOKEN);
    chmodSync(open, 0o666);
    const two = await refusal(entry, { BATON_METRICS_TOKEN_FILE: open });
    expect([two.code, two.text]).toEqual([78, expect.stringContaining("other users may write")]);
    const three = await refusal(entry, { ...local, BATON_METRICS_PORT: "65536" });
    expect([three.code, three.text]).toEqual([78, expect.stringContaining("BATON_METRICS_PORT: must be")]);
  });
});
