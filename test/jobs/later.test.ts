/**
 * Jobs that run later, and jobs that are tried more than once, in a fleet of real processes with
 * two jobs processes, each of which might queue a due job.
 */
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { accepted, ask, ended, simpleBody, standing, submit, type Body } from "./ask.js";

const served = useFleet({ gateways: 2, jobs: 2, models: ["simple", "picky", "accumulate"], direct: true });
const other = () => served.fleet.urls[1] ?? "";

const HOUR = 3_600_000;
const inFuture = (ms: number) => new Date(Date.now() + ms).toISOString();
const msOf = (time: string | null | undefined) => Date.parse(time ?? "");
/** A body that the model itself refuses, which is a failure of class 5xx. */
const refusedByModel = { inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [1_000_000] }] };
const step = (sequence: number, value: number, start = false) => ({
  parameters: { sequence_id: sequence, sequence_start: start },
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [value] }],
});
const remove = (id: string) => ask(`${served.url}/v2/jobs/${id}`, { method: "DELETE" });
/** The counters of waiting jobs and their bytes. */
const counted = async () => (await served.redis.hget("load:all", "later")) ?? "0 0";
const timers = () => served.redis.zcard("{jobs}:due:delayed");

describe("a job that is run later", () => {
  it("is scheduled until then, and then runs as any other", async () => {
    const job = { infer: simpleBody(3), delay: 1_500, deadline: HOUR };
    const view = await accepted(served.url, "simple", job);
    expect(view).toMatchObject({ state: "scheduled", queued_at: null, position: null, attempts_made: 0 });
    expect(view).toMatchObject({ request_id: null, started_at: null, ended_at: null });
    const created = msOf(view.created_at);
    expect(msOf(view.run_at)).toBe(created + 1_500);
    expect(msOf(view.deadline)).toBe(created + 1_500 + HOUR);
    expect((await ask(`${other()}/v2/jobs/${view.id}/result`)).body.code).toBe("job_not_ended");
    const end = await ended(other(), view.id);
    expect(end).toMatchObject({ state: "completed", run_at: view.run_at, attempts_made: 1, error: null });
    expect(end.result?.outputs?.[0]?.data[0]).toBe(6);
    expect(msOf(end.queued_at)).toBeGreaterThanOrEqual(msOf(end.run_at));
    expect(end.request_id).toBe(view.id.slice("job_".length));
  });

  it("runs at a time that is named, a step of a sequence, too", async () => {
    const sequence = 77;
    const first = await accepted(served.url, "accumulate", { infer: step(sequence, 5, true) });
    expect((await ended(served.url, first.id)).state).toBe("completed");
    const later = await accepted(other(), "accumulate", { infer: step(sequence, 7), run_at: inFuture(1_000) });
    expect(later).toMatchObject({ state: "scheduled" });
    expect((await ended(served.url, later.id)).result?.outputs?.[0]?.data[0]).toBe(12);
  });

  it("is listed, and cancelled before its time: then it never runs, and nothing of it waits", async () => {
    const before = [await counted(), await timers()];
    const view = await accepted(served.url, "simple", { infer: simpleBody(1), delay: HOUR, labels: { a: "cancel" } });
    await expect.poll(timers).toBe(Number(before[1]) + 1);
    const listed = async (state: string) =>
      (await ask(`${other()}/v2/jobs?state=${state}&label=a:cancel`)).body.data.map(({ id }) => id);
    expect(await listed("scheduled")).toEqual([view.id]);
    expect(await listed("queued,running")).toEqual([]);
    for (let i = 0; i < 2; i++) {
      expect(await remove(view.id)).toMatchObject({ status: 200, body: { state: "cancelled", result: null } });
    }
    expect((await ended(other(), view.id)).error).toMatchObject({ code: "cancelled" });
    expect(await listed("scheduled")).toEqual([]);
    expect(await listed("cancelled")).toEqual([view.id]);
    expect(await ask(`${other()}/v2/jobs/${view.id}/retry`, { method: "POST" })).toMatchObject({ status: 409 });
    await expect.poll(async () => [await counted(), await timers()]).toEqual(before);
  });

  it("under an Idempotency-Key is one job at every gateway, also when its time has passed", async () => {
    const headers = { "idempotency-key": randomUUID() };
    const job = { infer: simpleBody(1), run_at: inFuture(1_500) };
    const tries = await Promise.all(
      [served.url, other(), served.url, other()].map((url) => submit(url, "simple", job, headers)),
    );
    expect(tries.map(({ status }) => status)).toEqual([202, 202, 202, 202]);
    expect(new Set(tries.map(({ body }) => body.id)).size).toBe(1);
    expect(tries.filter((one) => one.headers.get("idempotent-replayed") === "true")).toHaveLength(3);
    const another = [
      { infer: simpleBody(2), run_at: job.run_at },
      { ...job, priority: 2 },
      { infer: simpleBody(1) },
      { infer: simpleBody(1), delay: 1_500 },
    ];
    const mismatches = async () => {
      for (const one of another) {
        expect(await submit(other(), "simple", one, headers)).toMatchObject({
          status: 422,
          body: { code: "idempotency_mismatch" },
        });
      }
    };
    await mismatches();
    const id = tries[0]?.body.id ?? "";
    expect(await ended(served.url, id)).toMatchObject({ state: "completed", attempts_made: 1 });
    expect(msOf(job.run_at)).toBeLessThan(Date.now());
    expect(await submit(other(), "simple", job, headers)).toMatchObject({ status: 202, body: { id } });
    await mismatches();
    expect((await submit(other(), "simple", job)).body.error).toMatch(/run_at must not lie in the past/);
    const late = await submit(other(), "simple", job, { "idempotency-key": randomUUID() });
    expect(late.body.error).toMatch(/run_at must not lie in the past/);
  });

  it("was queued at once under its key: it is the same job for nobody who delays it", async () => {
    const headers = { "idempotency-key": randomUUID() };
    await submit(served.url, "simple", { infer: simpleBody(1) }, headers);
    const delayed = await submit(other(), "simple", { infer: simpleBody(1), delay: HOUR }, headers);
    expect(delayed).toMatchObject({ status: 422, body: { code: "idempotency_mismatch" } });
  });

  it("comes again where its timer was lost", async () => {
    const views: Body[] = [];
    for (let i = 0; i < 5; i++)
      views.push(await accepted(served.url, "simple", { infer: simpleBody(i), delay: 2_000 }));
    await expect.poll(timers).toBeGreaterThanOrEqual(5);
    const keys = await served.redis.keys("{jobs}:due:*");
    await served.redis.unlink(keys);
    const ends = await Promise.all(views.map(({ id }) => ended(other(), id)));
    expect(ends.map(({ state, attempts_made: made }) => [state, made])).toEqual(views.map(() => ["completed", 1]));
  });
});

describe("a job that is tried more than once", () => {
  it("comes again after each failure of the model, and fails with the last one", async () => {
    const backoff = { type: "exponential", delay: 200, max: 300 };
    const { id } = await accepted(served.url, "picky", { infer: refusedByModel, attempts: 3, backoff });
    const end = await ended(other(), id);
    expect(end).toMatchObject({ state: "failed", attempts: 3, attempts_made: 3, error: { code: "model_error" } });
    expect(end.request_id).toBe(id.slice("job_".length).replace(".", "-3."));
    // The client may retry the job.
    expect((await ask(`${other()}/v2/jobs/${id}/retry`, { method: "POST" })).status).toBe(202);
    expect(await ended(served.url, id)).toMatchObject({ state: "failed", attempts_made: 4 });
  });

  it("is scheduled while it waits, and can be cancelled then", async () => {
    const before = await counted();
    const job = { infer: refusedByModel, attempts: 2, backoff: { type: "fixed", delay: HOUR, max: HOUR } };
    const { id } = await accepted(served.url, "picky", job);
    const waits = await standing(other(), id, ({ state }) => state === "scheduled");
    expect(waits).toMatchObject({ attempts_made: 1, ended_at: null, queued_at: null, error: null });
    expect(msOf(waits.run_at)).toBeGreaterThan(Date.now());
    expect((await ask(`${other()}/v2/jobs/${id}/retry`, { method: "POST" })).body.code).toBe("job_not_retryable");
    expect(await remove(id)).toMatchObject({ status: 200, body: { state: "cancelled", attempts_made: 1 } });
    expect(await counted()).toBe(before);
  });

  it("is not tried again after its deadline", async () => {
    const backoff = { type: "fixed", delay: HOUR, max: HOUR };
    const { id } = await accepted(served.url, "picky", {
      infer: refusedByModel,
      attempts: 9,
      backoff,
      deadline: 60_000,
    });
    expect(await ended(other(), id)).toMatchObject({ state: "failed", attempts_made: 1 });
  });

  it("is tried once where it is cancelled, or what it says is wrong by then", async () => {
    const gone = { infer: step(99, 1), attempts: 5, delay: 1 };
    const { id } = await accepted(served.url, "accumulate", gone);
    expect(await ended(other(), id)).toMatchObject({
      state: "failed",
      attempts_made: 0,
      queued_at: null,
      error: { code: "sequence_start_required" },
    });
    expect((await ask(`${other()}/v2/jobs/${id}/result`)).status).toBe(400);
    // By then the missing sequence may exist.
    await ended(served.url, (await accepted(served.url, "accumulate", { infer: step(99, 3, true) })).id);
    expect((await ask(`${other()}/v2/jobs/${id}/retry`, { method: "POST" })).status).toBe(202);
    expect(await ended(other(), id)).toMatchObject({ state: "completed", attempts_made: 1, error: null });
  });
});

describe("what waits", () => {
  it("is nothing in the end, and nothing is counted", async () => {
    await expect.poll(async () => [await counted(), await served.redis.zcard("later:all")]).toEqual(["0 0", 0]);
  });
});
