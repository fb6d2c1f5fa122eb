/**
 * Jobs that wait, since their worker takes no requests: their place, their priority, and their
 * ends.
 */
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { accepted, ask, ended, simpleBody, type Body } from "./ask.js";

const served = useFleet({
  gateways: 2,
  models: ["simple"],
  direct: true,
  env: { BATON_TENANT_HEADER: "x-tenant", BATON_BUCKETS: "1" },
});
const blue = { "x-tenant": "blue" };
const other = () => served.fleet.urls[1] ?? "";
const get = (path: string, headers: Record<string, string> = blue) => ask(`${other()}${path}`, { headers });
const post = (path: string) => ask(`${served.url}${path}`, { method: "POST", headers: blue });
const remove = (path: string) => ask(`${other()}${path}`, { method: "DELETE", headers: blue });

/** Keeps the worker away meanwhile, so that admitted requests stay in the queue. */
async function whileHeld<T>(act: () => Promise<T>): Promise<T> {
  const [worker] = served.fleet.workers;
  await worker?.kill();
  try {
    return await act();
  } finally {
    await worker?.start();
  }
}

describe("a job that waits", () => {
  it("says its place, and is cancelled at any gateway, twice", async () => {
    const ids = await whileHeld(async () => {
      const jobs: Body[] = [];
      for (let i = 0; i < 3; i++) jobs.push(await accepted(served.url, "simple", { infer: simpleBody(i) }, blue));
      const views = await Promise.all(jobs.map(({ id }) => get(`/v2/jobs/${id}`)));
      for (const { body } of views) expect(body).toMatchObject({ state: "queued", started_at: null, ended_at: null });
      const [first] = jobs;
      expect(await get(`/v2/jobs/${first?.id}/result`)).toMatchObject({ status: 409, body: { code: "job_not_ended" } });
      for (let i = 0; i < 2; i++) {
        expect(await remove(`/v2/jobs/${first?.id}`)).toMatchObject({ status: 200, body: { state: "cancelled" } });
      }
      return jobs.map(({ id }) => id);
    });
    const views = await Promise.all(ids.map((id) => ended(other(), id, blue)));
    expect(views.map(({ state }) => state)).toEqual(["cancelled", "completed", "completed"]);
    expect(views[0]).toMatchObject({ error: { code: "cancelled" }, attempts_made: 0, result: null });
    expect(await remove(`/v2/jobs/${ids[1]}`)).toMatchObject({
      status: 409,
      body: { code: "already_ended", state: "completed" },
    });
    expect(await post(`/v2/jobs/${ids[0]}/retry`)).toMatchObject({ status: 409, body: { code: "job_not_retryable" } });
    expect(await post(`/v2/jobs/${ids[1]}/retry`)).toMatchObject({ status: 409, body: { code: "job_not_retryable" } });
  });

  it("expires behind its deadline, and is run once more", async () => {
    const id = await whileHeld(async () => {
      const job = await accepted(served.url, "simple", { infer: simpleBody(4), deadline: 1 }, blue);
      expect(await ended(other(), job.id, blue)).toMatchObject({ state: "expired", error: { code: "expired" } });
      const again = await post(`/v2/jobs/${job.id}/retry`);
      expect(again).toMatchObject({ status: 202, body: { id: job.id } });
      await ended(other(), job.id, blue);
      return job.id;
    });
    // A deadline at a fixed time stays in the past; a deadline in ms counts anew.
    expect((await get(`/v2/jobs/${id}`)).body).toMatchObject({ state: "expired", attempts_made: 1 });
  });

  it("goes by its priority where there is no room", { timeout: 120_000 }, async () => {
    const placeOf = async ({ id }: Body) => (await get(`/v2/jobs/${id}`)).body.position ?? -1;
    const late: Body[] = [];
    let ready = 0;
    await whileHeld(async () => {
      for (let i = 0; i < 150; i++) {
        late.push(await accepted(served.url, "simple", { infer: simpleBody(i), priority: 9 }, blue));
      }
      const [first, second] = late;
      const last = late.at(-1);
      if (first === undefined || second === undefined || last === undefined) throw new Error("no job was accepted");
      expect([await placeOf(first), await placeOf(second), await placeOf(last)]).toEqual([0, 1, 149]);
      const urgent = await accepted(served.url, "simple", { infer: simpleBody(7), priority: 1 }, blue);
      const usual = await accepted(served.url, "simple", { infer: simpleBody(8) }, blue);
      // The entries that workers can take at once leave in the order of their arrival.
      ready = await placeOf(urgent);
      expect(ready).toBeLessThan(149);
      expect(await placeOf(usual)).toBe(ready + 1);
      expect(await placeOf(last)).toBe(151);
      // The jobs of two tenants take turns.
      const red = await accepted(served.url, "simple", { infer: simpleBody(9), priority: 9 }, { "x-tenant": "red" });
      expect((await get(`/v2/jobs/${red.id}`, { "x-tenant": "red" })).body.position).toBe(ready + 3);
      late.push(urgent, usual);
    });
    const ends = await Promise.all(late.map(({ id }) => ended(other(), id, blue)));
    expect(ends.filter(({ state }) => state !== "completed")).toEqual([]);
    const begun = ends.map(({ started_at }) => Date.parse(started_at ?? ""));
    const [urgent, usual] = begun.slice(-2);
    expect(begun.slice(0, 150).filter((at) => at < (urgent ?? 0)).length).toBeLessThanOrEqual(ready);
    expect(begun.slice(0, 150).filter((at) => at < (usual ?? 0)).length).toBeLessThanOrEqual(ready);
  });
});
