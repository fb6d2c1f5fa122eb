/** The header of a proxy counts from the proxy's address, and from no other. */
import { connect } from "node:net";
import { expect, it } from "vitest";
import { rawPost, statusesIn } from "../fixtures/requests.js";
import { simpleBody } from "../jobs/ask.js";
import { useFleet } from "../support/fleet/use-fleet.js";

const served = useFleet({
  models: ["simple"],
  direct: true,
  env: { BATON_TENANT_HEADER: "x-tenant", BATON_TRUSTED_PROXIES: "127.0.0.2" },
});

/** Sends a request from an address of this machine, and resolves with the reply. */
function sendFrom(localAddress: string, fields: readonly string[]): Promise<string> {
  const bytes = rawPost("/v2/models/simple/infer", JSON.stringify(simpleBody(3)), fields);
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = connect({ port: Number(new URL(served.url).port), host: "127.0.0.1", localAddress });
    socket.once("error", reject).once("connect", () => socket.write(bytes));
    socket.on("data", (piece) => {
      text += piece.toString("latin1");
      if (!text.endsWith("}")) return;
      socket.destroy();
      resolve(text);
    });
  });
}

it.each([
  ["parsed on the socket", []],
  ["parsed by node", ["X:1"]],
])("a request that is %s names its tenant through the proxy only", async (_, more) => {
  const tenant = [...more, "X-Tenant: acme"];
  expect(statusesIn(await sendFrom("127.0.0.2", tenant))).toEqual([200]);
  const refused = await sendFrom("127.0.0.1", tenant);
  expect(statusesIn(refused)).toEqual([403]);
  expect(refused).toContain("BATON_TRUSTED_PROXIES");
});
