/** Schedules whose jobs are refused at their times: for now, or for good. */
import { expect, it } from "vitest";
import { accepted, ask, simpleBody, submit } from "../jobs/ask.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { askFor, find, jobsOf, made } from "./ask.js";

const served = useFleet({
  jobs: 1,
  models: ["simple", "accumulate"],
  env: { BATON_QUEUE_LIMIT: "10", BATON_BUCKETS: "1" },
});

it(
  "while the queue is full, they are tried again, and the newest time comes when it is not",
  { timeout: 120_000 },
  async () => {
    const { url } = served;
    const [worker] = served.fleet.workers;
    worker?.freeze();
    let status = 202;
    for (let i = 0; i < 100 && status === 202; i++)
      ({ status } = await submit(url, "simple", { infer: simpleBody(i) }));
    expect(status).toBe(503);
    const { id } = await made(url, "simple", { every: 1_000, job: { infer: simpleBody(1) } });
    await expect.poll(async () => (await find(url, id)).last_error?.code).toBe("missed");
    expect(await find(url, id)).toMatchObject({ state: "active", runs: 0, last_job_id: null });
    expect(await jobsOf(url, id)).toEqual([]);
    const { at = "" } = (await find(url, id)).last_error ?? {};
    worker?.thaw();
    await expect.poll(async () => (await find(url, id)).runs, { timeout: 60_000 }).toBeGreaterThan(0);
    const [first] = await jobsOf(url, id);
    expect(Date.parse(first?.scheduled_for ?? "")).toBeGreaterThan(Date.parse(at));
    await askFor(url, `/schedules/${id}`, { method: "DELETE" });
    await expect.poll(async () => (await submit(url, "simple", { infer: simpleBody(1) })).status).toBe(202);
  },
);

it(
  "while no worker lives, they are tried again, and never found wrong for want of their model",
  { timeout: 120_000 },
  async () => {
    const { url } = served;
    const [worker] = served.fleet.workers;
    const { id } = await made(url, "simple", { every: 1_000, job: { infer: simpleBody(1) } });
    await askFor(url, `/schedules/${id}/pause`, { method: "POST" });
    await worker?.terminate();
    // A process that starts now knows of no models.
    await served.fleet.jobs[0]?.restart();
    const { runs } = await find(url, id);
    await askFor(url, `/schedules/${id}/resume`, { method: "POST" });
    await expect.poll(async () => (await find(url, id)).last_error?.code).toBe("missed");
    await worker?.start();
    await expect.poll(async () => (await find(url, id)).runs, { timeout: 60_000 }).toBeGreaterThan(runs);
    await askFor(url, `/schedules/${id}`, { method: "DELETE" });
  },
);

it("for good: the reason is shown, and they go on", { timeout: 120_000 }, async () => {
  const { url } = served;
  const step = (start: boolean) => ({
    parameters: { sequence_id: 77, sequence_start: start },
    inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }],
  });
  // The sequence does not exist yet.
  const { id } = await made(url, "accumulate", { every: 1_000, limit: 1, job: { infer: step(false) } });
  await expect.poll(async () => (await find(url, id)).last_error?.code).toBe("sequence_start_required");
  expect(await find(url, id)).toMatchObject({ state: "active", runs: 0 });
  await accepted(url, "accumulate", { infer: step(true) });
  await expect.poll(async () => (await find(url, id)).state).toBe("ended");
  expect(await find(url, id)).toMatchObject({ runs: 1, last_error: null });
  expect((await ask(`${url}/v2/jobs?schedule=${id}`)).body.data).toHaveLength(1);
});
