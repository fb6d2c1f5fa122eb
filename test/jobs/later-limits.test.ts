/**
 * The limits of jobs that wait, and jobs that are due while there is no room for them, or no worker
 * that serves their model.
 */
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { accepted, ask, ended, simpleBody, standing, submit } from "./ask.js";

const served = useFleet({
  jobs: 1,
  models: ["simple"],
  direct: true,
  env: {
    BATON_DELAYED_LIMIT: "3",
    BATON_DELAYED_BYTES: "13000",
    BATON_QUEUE_LIMIT: "2",
    BATON_TENANT_HEADER: "x-tenant",
  },
});

const HOUR = 3_600_000;
const blue = { "x-tenant": "blue" };
const red = { "x-tenant": "red" };
const later = (delay: number, more: object = {}) => ({ infer: simpleBody(1), delay, ...more });
const remove = (id: string, tenant: Record<string, string>) =>
  ask(`${served.url}/v2/jobs/${id}`, { method: "DELETE", headers: tenant });

describe("jobs that wait", () => {
  it("have a limit for each tenant, and one in bytes for all, which refusals name", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.push((await accepted(served.url, "simple", later(HOUR), blue)).id);
    const full = await submit(served.url, "simple", later(HOUR), blue);
    expect(full).toMatchObject({ status: 429, body: { code: "tenant_limit" } });
    expect(full.body.error).toMatch(/tenant 'blue' may have 3 jobs that wait .* \(BATON_DELAYED_LIMIT\)/);
    expect(full.headers.get("retry-after")).not.toBeNull();
    const large = await submit(served.url, "simple", later(HOUR), red);
    expect(large).toMatchObject({ status: 503, body: { code: "queue_full" } });
    expect(large.body.error).toMatch(/BATON_DELAYED_BYTES/);
    // Only the tenant of a job may cancel the job.
    expect((await remove(ids[0] ?? "", red)).status).toBe(404);
    for (const id of ids) expect((await remove(id, blue)).status).toBe(200);
    const { id } = await accepted(served.url, "simple", later(HOUR), red);
    await remove(id, red);
  });

  it("are not taken by a Redis that is full, which is said, and those that are there stay", async () => {
    const { id } = await accepted(served.url, "simple", later(HOUR), blue);
    await served.redis.config("SET", "maxmemory", "1");
    const full = await submit(served.url, "simple", later(HOUR), blue);
    expect(full).toMatchObject({ status: 503, body: { code: "unavailable" } });
    expect((await remove(id, blue)).body).toMatchObject({ state: "cancelled" });
    await served.redis.config("SET", "maxmemory", "0");
  });

  it("come again where the queue is full when they are due, until their deadlines", async () => {
    const [worker] = served.fleet.workers;
    worker?.freeze();
    const first = await accepted(served.url, "simple", { infer: simpleBody(4) }, blue);
    const waits = await accepted(served.url, "simple", later(1), blue);
    const expires = await accepted(served.url, "simple", later(1, { deadline: 1_500 }), blue);
    const putOff = async (id: string) => {
      const { run_at: at, created_at: created } = (await ask(`${served.url}/v2/jobs/${id}`, { headers: blue })).body;
      return Date.parse(at ?? "") > Date.parse(created) + 1;
    };
    await expect.poll(() => putOff(waits.id)).toBe(true);
    const end = await ended(served.url, expires.id, blue);
    expect(end).toMatchObject({ state: "expired", attempts_made: 0, queued_at: null, error: { code: "expired" } });
    worker?.thaw();
    expect((await ended(served.url, first.id, blue)).state).toBe("completed");
    expect(await ended(served.url, waits.id, blue)).toMatchObject({ state: "completed", attempts_made: 1 });
  });

  it("fail where their version is served no longer when they are due", async () => {
    const url = `${served.url}/v2/models/simple/versions/1/jobs`;
    const { body } = await ask(url, { body: later(1_500), headers: blue });
    expect(body).toMatchObject({ state: "scheduled", version: "1" });
    const key = await served.redis
      .keys("job:*")
      .then((keys) => keys.find((one) => one.includes(body.id.slice(4, 26))) ?? "");
    // Writes another version into the record.
    await served.redis.hset(
      key,
      "options",
      (await served.redis.hget(key, "options"))?.replace('"version":"1"', '"version":"9"') ?? "",
    );
    const end = await standing(served.url, body.id, ({ state }) => state === "failed", blue);
    expect(end).toMatchObject({ attempts_made: 0, error: { code: "unknown_model" } });
    expect((await ask(`${served.url}/v2/jobs/${body.id}/result`, { headers: blue })).status).toBe(404);
  });
});
