/**
 * The call that queues a job records it, and the job ends with its request. The client's body stays
 * only while the job may be retried.
 */
import { describe, expect, it } from "vitest";
import { jobKey, jobsKey, loadKey, outcomeKey } from "#shared/queue/keys.js";
import type { Applicant } from "#shared/queue/admission/admit.js";
import { limitsOf, type CallNames } from "#shared/queue/admission/limits.js";
import { listJobs, newestJobs, type JobFilters, type JobPlace } from "#shared/queue/jobs/list.js";
import { tidyJobs } from "#shared/queue/jobs/tidy.js";
import { labelsText } from "#shared/queue/pieces/job.js";
import { readLabels } from "#shared/queue/jobs/read-labels.js";
import { readJob } from "#shared/queue/jobs/read.js";
import { reapKept } from "#shared/queue/admission/reap-kept.js";
import { cancelRequest } from "#shared/queue/ends/cancel.js";
import { readAllLoads } from "#shared/queue/pieces/load.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { indexId, listPage, type ListedJobs } from "../../gateway/jobs/pages.js";
import { admit, applicant, IDLE_MS, LIMITS, onlyCall, put, result, SEQUENCE, useLab } from "../support/queue/lab.js";
import { until } from "../support/until.js";

const TENANT = "default";
const body = Buffer.from("{all}");

describe("a job", () => {
  const lab = useLab();
  const options = (labels: object = {}) => JSON.stringify({ labels });
  const job = (request: string, labels?: object): Applicant => ({
    ...applicant(lab.lane, request, request),
    outcomeTtlMs: 600_000,
    job: { keptMs: 5_000, record: { type: "infer", options: options(labels), shown: "{}", body } },
  });
  const again = (name: string, was: string, request: string): Applicant => ({
    ...applicant(lab.lane, request, request),
    job: { keptMs: 5_000, record: undefined, again: { job: `${TENANT}:${name}`, was: `${TENANT}:${was}` } },
  });
  const admitAll = async (applicants: readonly Applicant[], limits = LIMITS, call = onlyCall()) =>
    (await admit(lab.redis, { gateway: "gw", limits }, applicants, call)).map(({ said }) => said);
  const view = (request: string) => readJob(lab.redis, lab.addressOf(request), 1);
  const bodyOf = (request: string) => lab.redis.hget(jobKey(lab.addressOf(request)), "body");
  const run = async () => {
    const delivery = await lab.takeOne();
    await commit(lab.queue, [result(delivery, put("s"))], IDLE_MS);
  };
  const fail = (request: string) =>
    lab.giveError(request, JSON.stringify({ code: "model_error", message: "no" }), 600_000);
  const listed = async (filters: JobFilters = {}, most = 100, from = newestJobs) =>
    (await listJobs(lab.redis, 0, TENANT, from, most, filters)).views
      .map(({ name }) => name)
      .filter((name) => name.startsWith(`${lab.lane.model}:`))
      .map((name) => name.slice(`${lab.lane.model}:${TENANT}:`.length));

  it("is recorded once, however many copies of the call arrive", async () => {
    const call = onlyCall();
    for (let i = 0; i < 2; i++) expect(await admitAll([job("r1")], LIMITS, call)).toEqual(["admitted"]);
    expect(await view("r1")).toMatchObject({ state: "queued", made: 1, request: `${TENANT}:r1`, position: 0 });
    expect(await listed()).toEqual(["r1"]);
    expect(await lab.take()).toHaveLength(1);
    expect(await view("r1")).toMatchObject({ state: "running", position: undefined });
  });

  it("is not there where its request was refused", async () => {
    expect(await admitAll([job("r1")], { ...LIMITS, queue: 0 })).toEqual(["queue-full"]);
    expect(await view("r1")).toBeUndefined();
    expect(await listed()).toEqual([]);
  });

  it("leaves room for requests whose clients wait", async () => {
    const ten = { ...LIMITS, queue: 10 };
    const requests = Array.from({ length: 11 }, (_, i) => job(`r${i}`));
    const said = await admitAll(requests, ten);
    expect(said.filter((one) => one === "admitted")).toHaveLength(9);
    expect(await admitAll([applicant(lab.lane, "p", "p"), applicant(lab.lane, "q", "q")], ten)).toEqual([
      "admitted",
      "queue-full",
    ]);
  });

  it("that finds no room does not say that there is none for others", async () => {
    const noted: number[] = [];
    const shares = {
      prepare: () => undefined,
      limitsOf: (_: number, names: CallNames) => limitsOf({ ...LIMITS, totalBytes: 0 }, names),
      generationsOf: (_: number, { most }: { readonly most: number }) => most,
      quotaOf: (_: number, { most }: { readonly most: number }) => most,
      note: () => undefined,
      noteFull: (bytes: number) => void noted.push(bytes),
    };
    const asked = [job("r1"), applicant(lab.lane, "r2", "four")];
    const said = await admit(lab.redis, { gateway: "gw", limits: LIMITS, shares }, asked, onlyCall());
    expect(said).toMatchObject([{ said: "queue-full" }, { said: "queue-full" }]);
    expect(noted).toEqual([4]);
  });

  it("counts for its tenant, with what its client has sent, until its request has left the queue", async () => {
    await lab.redis.unlink(loadKey(undefined));
    const limits = { ...LIMITS, tenantQueue: 2 };
    expect(await admitAll([job("r1"), job("r2"), job("r3")], limits)).toEqual(["admitted", "admitted", "queue-full"]);
    const ofTenant = async () =>
      (await readAllLoads(lab.redis, undefined)).find(({ field }) => field === `t:${TENANT}`);
    expect((await ofTenant())?.bytes).toBeGreaterThan(2 * "r1{all}".length);
    for (const delivery of await lab.take()) await commit(lab.queue, [result(delivery, put("s"))], IDLE_MS);
    expect(await ofTenant()).toBeUndefined();
  });

  it("counts as open until its request has left the queue, and then as ended, each once", async () => {
    await lab.redis.unlink(loadKey(undefined), "kept:all");
    const counted = async () =>
      Object.fromEntries(
        (await readAllLoads(lab.redis, undefined))
          .filter(({ field }) => field === "g:j" || field.startsWith("e:"))
          .map(({ field, requests }) => [field.replace(lab.lane.model, "m"), requests]),
      );
    const call = onlyCall();
    for (let i = 0; i < 2; i++)
      await admitAll(
        ["r1", "r2", "r3", "r4", "r5"].map((one) => job(one)),
        LIMITS,
        call,
      );
    expect(await admitAll([applicant(lab.lane, "r6", "r6")])).toEqual(["admitted"]);
    expect(await counted()).toEqual({ "g:j": 5 });
    const ending = { message: "no", ttlMs: 60_000, stream: false };
    for (let i = 0; i < 2; i++) {
      await cancelRequest(lab.redis, lab.addressOf("r1"), { ...ending, code: "cancelled" });
      await cancelRequest(lab.redis, lab.addressOf("r2"), { ...ending, code: "expired" });
      await fail("r3");
    }
    expect(await counted()).toEqual({ "g:j": 2, "e:cancelled:m": 1, "e:expired:m": 1, "e:failed:m": 1 });
    const settled = (await lab.take()).map((delivery) => result(delivery, put("s")));
    for (let i = 0; i < 2; i++) await commit(lab.queue, settled, IDLE_MS);
    expect(await counted()).toEqual({ "e:cancelled:m": 1, "e:expired:m": 1, "e:failed:m": 1, "e:completed:m": 2 });
    // A client has the failed job run again, and now it completes.
    await admitAll([again("r3", "r3", "r3-2")]);
    expect((await counted())["g:j"]).toBe(1);
    await run();
    expect(await counted()).toEqual({ "e:cancelled:m": 1, "e:expired:m": 1, "e:failed:m": 1, "e:completed:m": 3 });
  });

  it("has its result counted with all that are kept, until its own time is over", async () => {
    await lab.redis.unlink(loadKey(undefined), "kept:all");
    await admitAll([{ ...job("r1"), job: { keptMs: 1, record: { type: "infer", options: "{}", shown: "{}", body } } }]);
    const outcome = { kind: "result", body: Buffer.alloc(1_000) } as const;
    await commit(lab.queue, [{ ...result(await lab.takeOne(), put("s")), outcome }], IDLE_MS);
    const kept = async () => (await readAllLoads(lab.redis, undefined)).find(({ field }) => field === "kept")?.bytes;
    expect(await kept()).toBe(1_000);
    await until(async () => {
      await reapKept(lab.redis, loadKey(undefined), -1);
      return (await kept()) === undefined;
    });
    expect(await view("r1")).toMatchObject({ state: "completed", resultBytes: 0 });
  });

  it("that has failed has its body counted with the results that are kept, and goes as they do", async () => {
    await lab.redis.unlink(loadKey(undefined), "kept:all");
    const sent = Buffer.alloc(1_000, "x");
    const record = { type: "infer", options: "{}", shown: "{}", body: sent };
    const kept = async () => (await readAllLoads(lab.redis, undefined)).find(({ field }) => field === "kept")?.bytes;
    await admitAll(["r1", "r2"].map((one) => ({ ...job(one), job: { keptMs: 5_000, record } })));
    await fail("r1");
    await fail("r2");
    expect(await kept()).toBe(2_000);
    // A job that fails again counts once, and a job that completes is not counted.
    await admitAll([again("r1", "r1", "r1-2")]);
    await fail("r1-2");
    expect(await kept()).toBe(2_000);
    await admitAll([again("r1", "r1-2", "r1-3")]);
    await lab.take().then((all) =>
      commit(
        lab.queue,
        all.map((one) => result(one, put("s"))),
        IDLE_MS,
      ),
    );
    expect([await view("r1").then((one) => one?.state), await kept()]).toEqual(["completed", 1_000]);
    await reapKept(lab.redis, loadKey(undefined), 500);
    expect([await bodyOf("r2"), await kept()]).toEqual([null, undefined]);
    expect(await view("r2")).toMatchObject({ state: "failed" });
  });

  it("that is run once more stays listed for as long as it is known", async () => {
    await admitAll([job("r1")]);
    await fail("r1");
    // As if most of the index's time had passed.
    await lab.redis.pexpire(jobsKey(0, TENANT), 60_000);
    await admitAll([again("r1", "r1", "r1-2")]);
    const known = await lab.redis.pexpiretime(jobKey(lab.addressOf("r1")));
    expect(await lab.redis.pexpiretime(jobsKey(0, TENANT))).toBeGreaterThanOrEqual(known);
  });

  it("that is gone leaves the index with later ones, also where older ones wait for long", async () => {
    const index = jobsKey(0, TENANT);
    await lab.redis.unlink(index);
    await admitAll([job("old1"), job("old2")]);
    for (let round = 0; round < 8; round++) {
      const some = Array.from({ length: 40 }, (_, i) => `r${round}-${i}`);
      expect(
        new Set(
          await admitAll(
            some.map((one) => job(one)),
            { ...LIMITS, queue: 10_000 },
          ),
        ),
      ).toEqual(new Set(["admitted"]));
      await lab.redis.unlink(...some.map((one) => jobKey(lab.addressOf(one))));
    }
    // Each admission looks at two old jobs, so about as many leave as come.
    expect(await lab.redis.zcard(index)).toBeLessThan(200);
  });

  it("that is a step says how many steps of its sequence are before it", async () => {
    const step = (request: string, start: boolean) => ({
      ...job(request),
      sequence: { name: SEQUENCE, start, end: false },
    });
    await admitAll([step("s1", true), step("s2", false), step("s3", false)]);
    const places = async () => Promise.all(["s1", "s2", "s3"].map(async (one) => (await view(one))?.position));
    expect(await places()).toEqual([0, 1, 2]);
    await run();
    expect(await places()).toEqual([undefined, 0, 1]);
    const delivery = await lab.takeOne();
    expect(await view("s2")).toMatchObject({ state: "running" });
    await commit(lab.queue, [result(delivery, put("s"))], IDLE_MS);
    expect(await view("s2")).toMatchObject({ state: "completed" });
  });

  it("that has completed keeps its result for its own time, and no body", async () => {
    await admitAll([job("r1")]);
    await run();
    const stands = await view("r1");
    expect(stands).toMatchObject({ state: "completed", keptMs: 5_000, resultBytes: 6 });
    expect(stands?.beganAt).toBeLessThanOrEqual(stands?.endedAt ?? 0);
    expect(await bodyOf("r1")).toBeNull();
    for (const key of [jobKey(lab.addressOf("r1")), outcomeKey(lab.addressOf("r1"))]) {
      expect(await lab.redis.pttl(key)).toBeGreaterThan(500_000);
      expect(await lab.redis.pttl(key)).toBeLessThanOrEqual(600_000);
    }
  });

  it("that was cancelled keeps no body, one that has failed does", async () => {
    await admitAll([job("r1"), job("r2")]);
    const ending = { code: "cancelled", message: "", ttlMs: 60_000, stream: false } as const;
    await cancelRequest(lab.redis, lab.addressOf("r1"), ending);
    await fail("r2");
    expect([await bodyOf("r1"), await bodyOf("r2")]).toEqual([null, "{all}"]);
    expect([(await view("r1"))?.state, (await view("r2"))?.state]).toEqual(["cancelled", "failed"]);
  });

  it("says under which labels the end of its stream is published, and that of a later request", async () => {
    const stream = (one: Applicant) => ({ ...one, attendedMs: 0 });
    const labelled = job("r1", { team: "blue" });
    const record = labelled.job?.record && { ...labelled.job.record, labels: labelsText(["blue", "tale"]) };
    await admitAll([stream({ ...labelled, job: { keptMs: 5_000, record } }), stream(job("r2", { team: "blue" }))]);
    const ending = { code: "expired", message: "", ttlMs: 60_000, stream: true } as const;
    const end = async (request: string) => {
      const ended = await cancelRequest(lab.redis, lab.addressOf(request), ending);
      return ended.said === "given" ? ended.last?.labels : ended.said;
    };
    expect([await end("r1"), await end("r2")]).toEqual([["blue", "tale"], []]);
    expect(await admitAll([stream(again("r1", "r1", "r1-2"))])).toEqual(["admitted"]);
    const read = (request: string) => readLabels(lab.redis, lab.addressOf(request));
    expect([await read("r1-2"), await read("r2"), await read("nobody")]).toEqual([["blue", "tale"], [], []]);
    expect(await end("r1-2")).toEqual(["blue", "tale"]);
  });

  it("is run once more by one of those who ask, and keeps its name", async () => {
    await admitAll([job("r1")]);
    await fail("r1");
    const before = await view("r1");
    expect(await admitAll([again("r1", "r1", "r1-2"), again("r1", "r1", "r1-x")])).toEqual(["admitted", "job-changed"]);
    expect(await view("r1")).toMatchObject({ state: "queued", made: 2, recordedAt: before?.recordedAt });
    expect(await lab.redis.pttl(outcomeKey(lab.addressOf("r1")))).toBeGreaterThan(600_000);
    expect(await admitAll([again("r1", "r1", "r1-3")])).toEqual(["job-changed"]);
    expect(await listed()).toEqual(["r1"]);
  });

  it("is listed, the newest first, by state, model and labels, from behind any other", async () => {
    for (let i = 0; i < 5; i++) {
      await admitAll([job(`r${i}`, { odd: String(i % 2) })]);
    }
    await fail("r3");
    const newest = ["r4", "r3", "r2", "r1", "r0"];
    const { model } = lab.lane;
    expect((await listed()).toSorted()).toEqual(newest.toSorted());
    expect(await listed({ states: ["failed"] })).toEqual(["r3"]);
    expect((await listed({ model, labels: [["odd", "1"]] })).toSorted()).toEqual(["r1", "r3"]);
    expect(await listed({ model, labels: [["odd", "2"]] })).toEqual([]);
    const pages = [];
    for (let from: typeof newestJobs | undefined = newestJobs; from !== undefined;) {
      const page = await listJobs(lab.redis, 0, TENANT, from, 2, { model });
      pages.push(...page.views.map(({ name }) => name));
      from = page.next;
    }
    expect(pages).toEqual((await listed({ model })).map((request) => `${model}:${TENANT}:${request}`));
  });

  it("that is among many is found in pages that each look at some, and tell where to go on", async () => {
    await lab.redis.unlink(jobsKey(0, TENANT));
    const calls = 22;
    for (let i = 0; i < calls; i++) {
      const some = Array.from({ length: 200 }, (_, j) =>
        job(`r${i}-${j}`, { rare: i === 0 && j === 0 ? "\u00fc" : "no" }),
      );
      await admitAll(some, { ...LIMITS, queue: 10_000 });
    }
    const found: string[] = [];
    let pages = 0;
    for (let from: JobPlace | undefined = newestJobs; from !== undefined; pages++) {
      const page: ListedJobs = await listPage(lab.redis, 1, TENANT, from, 20, { labels: [["rare", "\u00fc"]] });
      found.push(...page.jobs.map(({ job: { request } }) => request));
      const last = page.hasMore ? page.last : undefined;
      const at = last && (await view(last.request))?.recordedAt;
      from = last && { at: at ?? 0, id: indexId(last) };
    }
    expect({ found, pages }).toEqual({ found: ["r0-0"], pages: 2 });
  });

  it("that is gone is told of no more, keeps its place for lists that go on, and leaves it when tidied", async () => {
    await admitAll([job("r1"), job("r2"), job("r3")]);
    const ids = async () => (await lab.redis.zrange(jobsKey(0, TENANT), "0", "-1")).map((id) => id.split(":").at(-1));
    await lab.redis.unlink(jobKey(lab.addressOf("r2")));
    expect(await listed()).toEqual(["r3", "r1"]);
    expect(await ids()).toContain("r2");
    for (let from: number | undefined = 0; from !== undefined;) {
      from = (await tidyJobs(lab.redis, 0, TENANT, from, 100)).next;
    }
    expect(await ids()).not.toContain("r2");
    expect(await listed()).toEqual(["r3", "r1"]);
  });

  it("is listed although Redis takes no writes", async () => {
    await admitAll([job("r1"), job("r2")]);
    await lab.redis.unlink(jobKey(lab.addressOf("r1")));
    await lab.redis.config("SET", "min-replicas-to-write", "1");
    try {
      expect(await listed()).toEqual(["r2"]);
    } finally {
      await lab.redis.config("SET", "min-replicas-to-write", "0");
    }
  });
});
