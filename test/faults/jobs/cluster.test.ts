/**
 * Jobs over a Redis Cluster: the buckets of a tenant's jobs lie at several masters, and the webhook
 * messages at another master.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clusterStore } from "../../support/fleet/cluster-store.js";
import { startFleet, type Fleet } from "../../support/fleet/fleet.js";
import { find, jobsOf, made } from "../../schedules/ask.js";
import { Receiver, WebhookClient } from "../../support/jobs/webhooks.js";
import { accepted, ask, ended, simpleBody } from "../../jobs/ask.js";

describe("jobs over a Redis Cluster", () => {
  let fleet: Fleet;
  let receiver: Receiver;
  beforeAll(async () => {
    const store = await clusterStore();
    receiver = await Receiver.start();
    const env = { BATON_BUCKETS: "8" };
    const models = ["simple", "picky", "gen-cheap"];
    fleet = await startFleet({ gateways: 2, jobs: 1, models, store, env });
    await fleet.whenServing(60_000);
  }, 240_000);
  afterAll(async () => {
    await fleet.dispose();
    await receiver.dispose();
  });

  it("run, are run once more, are listed over all buckets, and are told of", { timeout: 120_000 }, async () => {
    const [url = "", other = ""] = fleet.urls;
    const picky = { inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [1_000_000] }] };
    const webhook = { url: receiver.url("/told"), events: ["job.started", "job.completed", "job.failed"] };
    const ids: string[] = [];
    for (let i = 0; i < 24; i++) {
      const generate = { text_input: "Once", max_tokens: 3 };
      const [model, job] =
        i % 6 === 0
          ? (["picky", { infer: picky }] as const)
          : i % 6 === 1
            ? (["gen-cheap", { generate }] as const)
            : (["simple", { infer: simpleBody(i) }] as const);
      ids.push((await accepted(url, model, { ...job, webhook })).id);
    }
    const ends = await Promise.all(ids.map((id) => ended(other, id)));
    expect(ends.map(({ state }) => state)).toEqual(ids.map((_, i) => (i % 6 === 0 ? "failed" : "completed")));
    const listed: string[] = [];
    for (let after = "", more = true; more;) {
      const { body } = await ask(`${other}/v2/jobs?limit=7${after}`);
      listed.push(...body.data.map(({ id }) => id));
      [after, more] = [`&after=${body.last_id}`, body.has_more];
    }
    expect(listed.toSorted()).toEqual(ids.toSorted());
    expect((await ask(`${other}/v2/jobs/${ids[0]}/retry`, { method: "POST" })).status).toBe(202);
    expect(await ended(url, ids[0] ?? "")).toMatchObject({ state: "failed", attempts_made: 2 });
    // A message for each start and each end; two of each for the job that ran twice.
    await expect.poll(() => new Set(receiver.at("/told").map(({ id }) => id)).size).toBe(2 * ids.length + 2);
    const deliveries = () => new WebhookClient(other).deliveries(`?job=${ids[0]}`);
    const delivered = ["job.failed", "job.failed", "job.started", "job.started"].map((event) => `${event} delivered`);
    const told = async () => (await deliveries()).map(({ event, state }) => `${event} ${state}`).sort();
    await expect.poll(told).toEqual(delivered);
  });
  it("run later, are tried more than once, and are cancelled while they wait", { timeout: 120_000 }, async () => {
    const [url = "", other = ""] = fleet.urls;
    const picky = { inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [1_000_000] }] };
    const backoff = { type: "fixed", delay: 100 };
    const submitted = await Promise.all(
      Array.from({ length: 24 }, (_, i) => {
        if (i % 3 === 0) return accepted(url, "picky", { infer: picky, attempts: 2, backoff, delay: 100 });
        return accepted(url, "simple", { infer: simpleBody(i), delay: i % 3 === 1 ? 1_000 : 3_600_000 });
      }),
    );
    const ids = submitted.map(({ id }) => id);
    expect(new Set(ids.map((id) => id.split(".")[1])).size).toBeGreaterThan(3);
    for (const id of ids.filter((_, i) => i % 3 === 2)) {
      expect((await ask(`${other}/v2/jobs/${id}`, { method: "DELETE" })).status).toBe(200);
    }
    const ends = await Promise.all(ids.map((id) => ended(other, id)));
    expect(ends.map(({ state, attempts_made: made }) => `${state} ${made}`)).toEqual(
      ids.map((_, i) => ["failed 2", "completed 1", "cancelled 0"][i % 3]),
    );
  });

  it("are made by schedules", { timeout: 120_000 }, async () => {
    const [url = "", other = ""] = fleet.urls;
    const { id } = await made(url, "simple", { every: 1_000, limit: 3, job: { infer: simpleBody(1) } });
    await expect.poll(async () => (await find(other, id)).state, { timeout: 60_000 }).toBe("ended");
    const jobs = await jobsOf(other, id);
    expect(new Set(jobs.map((one) => one.scheduled_for)).size).toBe(3);
    for (const one of jobs) expect(await ended(url, one.id)).toMatchObject({ state: "completed" });
  });
});
