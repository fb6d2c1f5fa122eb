/** A webhook's message outlives the jobs process that sends it; a full Redis refuses in words. */
import { describe, expect, it } from "vitest";
import { nth } from "../faults/pace.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { useReceiver } from "../support/jobs/use-receiver.js";
import { noteExpiries, verified } from "../support/jobs/webhooks.js";

const served = useFleet({
  gateways: 1,
  workers: 1,
  jobs: 1,
  models: ["simple"],
  direct: true,
});
const own = useReceiver(served);

describe("a jobs process that is killed while it sends to a webhook", () => {
  it("leaves the message to the next one, which sends it under the same id", { timeout: 60_000 }, async () => {
    let answers = false;
    const { id, secret } = await own.client.register(own.receiver.on("/killed", () => (answers ? 204 : undefined)));
    await noteExpiries(own.redis, "default");
    await expect.poll(() => own.receiver.at("/killed")).toHaveLength(1);
    const jobs = nth(served.fleet.jobs, 0);
    await jobs.kill();
    answers = true;
    await jobs.start();
    // A lock that no process renews lasts for up to 15 s.
    await expect.poll(() => own.states(id), { timeout: 45_000 }).toEqual(["delivered"]);
    const sent = own.receiver.at("/killed");
    expect(new Set(sent.map((one) => one.id)).size).toBe(1);
    for (const one of sent) verified(one, secret);
  });
});

describe("a Redis that is full", () => {
  it("refuses in words, and takes requests again when it has room", async () => {
    const ready = async () => (await fetch(`${served.url}/v2/health/ready`)).status;
    expect((await infer()).status).toBe(200);
    await own.redis.config("SET", "maxmemory", "1");
    await expect.poll(ready).toBe(400);
    const refused = await infer();
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ code: "unavailable" });
    await own.redis.config("SET", "maxmemory", "0");
    await expect.poll(ready).toBe(200);
    expect((await infer()).status).toBe(200);
  });
});

function infer(): Promise<Response> {
  const tensor = (name: string) => ({ name, datatype: "INT32", shape: [1, 16], data: Array(16).fill(1) });
  const body = JSON.stringify({ inputs: [tensor("INPUT0"), tensor("INPUT1")] });
  return fetch(`${served.url}/v2/models/simple/infer`, { method: "POST", body });
}
