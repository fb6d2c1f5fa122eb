/**
 * A job that waits for its time, or for another attempt: only a caller that knows the job's stage
 * can change it, each change happens once, and the counts of waiting jobs are exact.
 */
import { beforeEach, describe, expect, it } from "vitest";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import type { RequestAddress } from "#shared/queue/address.js";
import type { Applicant } from "#shared/queue/admission/admit.js";
import { recount } from "#shared/queue/admission/recount.js";
import { cancelRequest } from "#shared/queue/ends/cancel.js";
import { repeatsText, type JobRecord, type Repeats, type Stage } from "#shared/queue/pieces/job.js";
import { endLater } from "#shared/queue/jobs/end-later.js";
import { overdueJobs } from "#shared/queue/jobs/overdue.js";
import { putOff } from "#shared/queue/jobs/put-off.js";
import { readDue } from "#shared/queue/jobs/read-due.js";
import { readJob } from "#shared/queue/jobs/read.js";
import { tidyJobs } from "#shared/queue/jobs/tidy.js";
import { recordLater, type LaterJob, type LaterLimits } from "#shared/queue/jobs/record-later.js";
import { eventsKey, jobKey, jobsKey, laterKey, loadKey, outcomeKey } from "#shared/queue/keys.js";
import { readAllLoads } from "#shared/queue/pieces/load.js";
import { admit, LIMITS, onlyCall, useLab, applicant } from "../support/queue/lab.js";
import { until } from "../support/until.js";

const TENANT = "default";
const HOUR = 3_600_000;
const NO_LIMITS: LaterLimits = { jobs: undefined, bytes: undefined };
const body = Buffer.alloc(1_000, "x");
const repeats = (terms: Partial<Repeats> = {}) =>
  repeatsText({ attempts: 3, delayMs: 1, factor: 2, mostMs: 50, mostBytes: -1, codes: ["model_error"], ...terms });

const lab = useLab();
beforeEach(() => lab.redis.unlink(loadKey(undefined), laterKey(loadKey(undefined)), "kept:all", eventsKey(0)));

const job = (request: string, tenant = TENANT): RequestAddress => ({ ...lab.addressOf(request), tenant });
const recordOf = (more: Partial<JobRecord> = {}): JobRecord => ({
  type: "infer",
  options: "{}",
  shown: "{}",
  body,
  wait: String(HOUR),
  ...more,
});
const record = async (address: RequestAddress, more: Partial<LaterJob> = {}, limits = NO_LIMITS) => {
  const usual = { job: address, due: { inMs: HOUR }, digest: "d", ttlMs: 600_000, record: recordOf() };
  return (await recordLater(lab.redis, { ...usual, ...more }, limits)).said;
};
const view = (request: string) => readJob(lab.redis, job(request), 1);
const stage = async (request: string): Promise<Stage> => {
  const found = await view(request);
  return { was: found?.request ?? "", dueAt: found?.dueAt };
};
const again = (name: string, at: Stage, request = name): Applicant => ({
  ...applicant(lab.lane, request, "frame"),
  job: { keptMs: 5_000, record: undefined, again: { job: `${TENANT}:${name}`, ...at } },
});
const first = (request: string, more: Partial<JobRecord>): Applicant => ({
  ...applicant(lab.lane, request, "frame"),
  outcomeTtlMs: 600_000,
  job: { keptMs: 5_000, record: recordOf(more) },
});
const admitted = async (...applicants: readonly Applicant[]) =>
  (await admit(lab.redis, { gateway: "gw", limits: LIMITS }, applicants, onlyCall())).map(({ said }) => said);
const fail = (request: string, code = "model_error") =>
  lab.giveError(request, JSON.stringify({ code, message: "no" }), 600_000);
const counted = async () =>
  Object.fromEntries(
    (await readAllLoads(lab.redis, undefined))
      .filter(({ field }) => field === "later" || field.startsWith("l:"))
      .map(({ field, requests, bytes }) => [field, [requests, bytes]]),
  );
/** The counts of all ends of jobs, by state. */
const ends = async () =>
  Object.fromEntries(
    (await readAllLoads(lab.redis, undefined)).flatMap(({ field, requests }) =>
      field.startsWith("e:") ? [[field.split(":")[1], requests] as const] : [],
    ),
  );
const entries = async () => (await lab.redis.xrange(eventsKey(0), "-", "+")).map(([, fields]) => fields);
const nothing = { code: "cancelled", message: "the request was cancelled" } as const;

describe("a job that is to be queued later", () => {
  it("is recorded once, told of once, and counted with what its record takes", async () => {
    expect(await record(job("r1"))).toBe("recorded");
    expect(await record(job("r1"))).toBe("known");
    expect(await record(job("r1"), { digest: "other" })).toBe("mismatch");
    expect(await view("r1")).toMatchObject({ state: "scheduled", made: 0, request: "", queuedAt: undefined });
    expect(await counted()).toEqual({ later: [1, 4_072], "l:default": [1, 4_072] });
    const facts = { job: `${lab.lane.model}:${TENANT}:r1`, run: "0" };
    const found = await entries();
    expect(found.map(([, tenant, , event]) => [tenant, event])).toEqual([[TENANT, "due"]]);
    expect(JSON.parse(found[0]?.[5] ?? "")).toEqual(facts);
    expect(await readDue(lab.redis, { job: job("r1"), run: 0 })).toBeGreaterThan(HOUR - 60_000);
    expect(await readDue(lab.redis, { job: job("r1"), run: 1 })).toBeUndefined();
  });

  it("is refused past the limit of its tenant, or of all, and leaves nothing behind then", async () => {
    const two = { jobs: 2, bytes: undefined };
    expect(await record(job("r1"), {}, two)).toBe("recorded");
    expect(await record(job("r2"), {}, two)).toBe("recorded");
    expect(await record(job("r3"), {}, two)).toBe("too-many");
    expect(await record(job("r3", "other"), {}, two)).toBe("recorded");
    expect(await record(job("r4"), {}, { jobs: undefined, bytes: 4 * 4_072 - 1 })).toBe("too-large");
    expect(await record(job("r4"), {}, { jobs: undefined, bytes: 4 * 4_072 })).toBe("recorded");
    expect(await view("r3")).toBeUndefined();
    expect(await counted()).toEqual({ later: [4, 16_288], "l:default": [3, 12_216], "l:other": [1, 4_072] });
  });

  it("is queued by one of those who know when it is due, and by nobody who does not", async () => {
    await record(job("r1"), { due: { inMs: 0 } });
    const at = await stage("r1");
    const late = { was: "", dueAt: (at.dueAt ?? 0) + 1 };
    expect(await admitted(again("r1", { was: "" }), again("r1", late))).toEqual(["job-changed", "job-changed"]);
    expect(await admitted(again("r1", at), again("r1", at, "r1-x"))).toEqual(["admitted", "job-changed"]);
    expect(await lab.take()).toHaveLength(1);
    expect(await view("r1")).toMatchObject({ state: "running", made: 1, request: `${TENANT}:r1`, dueAt: undefined });
    expect(await counted()).toEqual({});
    expect(await admitted(again("none", at, "none"))).toEqual(["job-changed"]);
  });

  it("is found where nobody has told of it, the oldest first", async () => {
    await record(job("r1"), { due: { atMs: 2_000 } });
    await record(job("r2"), { due: { atMs: 1_000 } });
    await record(job("r3"));
    const overdue = async (most = 10) => (await overdueJobs(lab.redis, 1, 0, most)).map((one) => one.job.request);
    expect(await overdue()).toEqual(["r2", "r1"]);
    expect(await overdue(1)).toEqual(["r2"]);
    await lab.redis.set(jobKey(job("r2")), "something else");
    expect(await overdue()).toEqual(["r1"]);
    expect(await counted()).toEqual({ later: [2, 8_144], "l:default": [2, 8_144] });
  });

  it("is counted anew where the counts were changed by hand", async () => {
    await record(job("r1"));
    await lab.redis.hset(loadKey(undefined), "later", "7 7", "l:default", "7 7", "l:other", "7 7");
    await recount(lab.redis, loadKey(undefined), 1, new AbortController().signal);
    expect(await counted()).toEqual({ later: [1, 4_072], "l:default": [1, 4_072] });
  });

  it("is ended once, at the stage that was looked at, and keeps its body unless it was cancelled", async () => {
    await record(job("r1"));
    await record(job("r2"));
    await endLater(lab.redis, job("r1"), { was: "", dueAt: 1 }, nothing, 60_000);
    expect((await view("r1"))?.state).toBe("scheduled");
    expect(await ends()).toEqual({});
    const at = await stage("r1");
    await endLater(lab.redis, job("r1"), at, nothing, 60_000);
    await endLater(lab.redis, job("r1"), at, { code: "expired", message: "no" }, 60_000);
    await endLater(lab.redis, job("r2"), await stage("r2"), { code: "unknown_model", message: "no" }, 60_000);
    expect(await view("r1")).toMatchObject({ state: "cancelled", made: 0, dueAt: undefined, request: "" });
    expect(await view("r2")).toMatchObject({
      state: "failed",
      failure: Buffer.from('{"code":"unknown_model","message":"no"}'),
    });
    expect(await ends()).toEqual({ cancelled: 1, failed: 1 });
    expect(await lab.redis.hexists(jobKey(job("r1")), "body")).toBe(0);
    expect(await lab.redis.hstrlen(jobKey(job("r2")), "body")).toBe(1_000);
    expect(await lab.redis.pttl(jobKey(job("r1")))).toBeLessThanOrEqual(60_000);
    expect(await counted()).toEqual({});
    // The script says that the timer has to be removed.
    expect(await entries()).toHaveLength(4);
    // A retry gives the job the state of its new request.
    expect(await admitted(again("r2", await stage("r2")))).toEqual(["admitted"]);
    expect(await view("r2")).toMatchObject({ state: "queued", made: 1, failure: undefined });
  });

  it("is put off for longer each time, and not by who comes late", async () => {
    await record(job("r1"), { due: { inMs: 0 } });
    const at = await stage("r1");
    const waits = [await putOff(lab.redis, job("r1"), at, HOUR)];
    expect(await putOff(lab.redis, job("r1"), at, HOUR)).toBeUndefined();
    for (let i = 0; i < 9; i++) waits.push(await putOff(lab.redis, job("r1"), await stage("r1"), HOUR));
    for (const [i, wait = 0] of waits.entries()) {
      expect(wait).toBeGreaterThanOrEqual(Math.min(500 * 2 ** i, 30_000));
      expect(wait).toBeLessThanOrEqual(1.5 * Math.min(500 * 2 ** i, 30_000));
    }
    expect(await overdueJobs(lab.redis, 1, 0, 10)).toEqual([]);
    // After this refusal the job is due within 15 ms.
    expect(await putOff(lab.redis, job("r1"), await stage("r1"), 10)).toBeLessThanOrEqual(15);
    expect((await view("r1"))?.refused).toBe(11);
    expect(await counted()).toEqual({ later: [1, 4_072], "l:default": [1, 4_072] });
  });
});

describe("a job that is tried more than once", () => {
  it("waits after each failure of the kind, and fails with the last", async () => {
    expect(await admitted(first("r1", { repeats: repeats() }))).toEqual(["admitted"]);
    for (let made = 1; made < 3; made++) {
      const request = made === 1 ? "r1" : `r1-${made}`;
      await fail(request);
      expect(await view("r1")).toMatchObject({ state: "scheduled", made, queuedAt: undefined, failure: undefined });
      expect(await counted()).toEqual({ later: [1, 4_072], "l:default": [1, 4_072] });
      expect(await admitted(again("r1", await stage("r1"), `r1-${made + 1}`))).toEqual(["admitted"]);
    }
    await fail("r1-3");
    expect(await view("r1")).toMatchObject({ state: "failed", made: 3 });
    expect(await counted()).toEqual({});
  });

  it("waits twice as long each time, or as long as before, up to what it says", async () => {
    const waits = async (name: string, terms: Partial<Repeats>) => {
      const found: number[] = [];
      await admitted(first(name, { repeats: repeats({ attempts: 9, delayMs: 10_000, mostMs: 50_000, ...terms }) }));
      for (let made = 1; made < 5; made++) {
        await fail(made === 1 ? name : `${name}-${made}`);
        found.push(Math.ceil(((await view(name))?.dueInMs ?? 0) / 5_000) * 5_000);
        await admitted(again(name, await stage(name), `${name}-${made + 1}`));
      }
      return found;
    };
    expect(await waits("r1", { factor: 2 })).toEqual([10_000, 20_000, 40_000, 50_000]);
    expect(await waits("r2", { factor: 1 })).toEqual([10_000, 10_000, 10_000, 10_000]);
  });

  it.each(["cancelled", "expired", "poison_request", "state_lost", "invalid_argument"])(
    "is not after %s",
    async (code) => {
      await admitted(first("r1", { repeats: repeats() }));
      await fail("r1", code);
      expect((await view("r1"))?.dueAt).toBeUndefined();
      expect(await counted()).toEqual({});
    },
  );

  it("is not where its client cancels it, where its time would be over, or where too much waits", async () => {
    await admitted(
      first("r1", { repeats: repeats() }),
      first("r2", { repeats: repeats({ delayMs: HOUR, mostMs: HOUR }) }),
    );
    const ending = { code: "cancelled", message: "", ttlMs: 60_000, stream: false } as const;
    await cancelRequest(lab.redis, job("r1"), ending);
    await fail("r2");
    expect([(await view("r1"))?.state, (await view("r2"))?.state]).toEqual(["cancelled", "failed"]);
    await admitted(
      first("r3", { repeats: repeats({ mostBytes: 3_000 }) }),
      first("r4", { repeats: repeats({ mostBytes: 3_000 }) }),
    );
    await fail("r3");
    await fail("r4");
    expect([(await view("r3"))?.state, (await view("r4"))?.state]).toEqual(["scheduled", "failed"]);
  });

  it("is the same job under its key when its first request is long forgotten", async () => {
    const keyed = { ...first("r1", { repeats: repeats() }), digest: "d" };
    expect(await admitted(keyed)).toEqual(["admitted"]);
    await fail("r1");
    await lab.redis.unlink(`out:${bucketTag(0)}:${lab.lane.model}:${TENANT}:r1`);
    expect(await admitted(keyed)).toEqual(["known"]);
    expect(await admitted({ ...keyed, digest: "other" })).toEqual(["mismatch"]);
    expect((await view("r1"))?.state).toBe("scheduled");
    // A job to be queued later under the same key does not match, either.
    expect(await record(job("r1"), { digest: "other" })).toBe("mismatch");
  });

  it("that an earlier version runs once more meanwhile does not wait any longer", async () => {
    await admitted(first("r1", { repeats: repeats({ delayMs: 10_000, mostMs: 10_000 }) }));
    await fail("r1");
    await lab.redis.hincrby(jobKey(job("r1")), "made", 1);
    expect((await view("r1"))?.dueAt).toBeUndefined();
    expect(await readDue(lab.redis, { job: job("r1"), run: 1 })).toBeUndefined();
    await until(async () => (await view("r1"))?.state === "failed");
  });
});

describe("a job whose request was ended by an earlier version, which knows no jobs", () => {
  beforeEach(() => lab.redis.unlink(jobsKey(0, TENANT)));
  /** The changes that a script of that version makes to the record of a request. */
  const endAsBefore = async (request: string, kind: "result" | "error", text: string) => {
    const out = outcomeKey(lab.addressOf(request));
    await lab.redis.hset(out, "kind", kind, "body", text, "ended", String(Date.now()));
    await lab.redis.pexpire(out, 600_000);
  };
  const tidy = async () => {
    for (let from: number | undefined = 0; from !== undefined;) {
      from = (await tidyJobs(lab.redis, 0, TENANT, from, 100)).next;
    }
  };
  const told = async () => (await entries()).map(([, , , event]) => String(event));
  const failure = JSON.stringify({ code: "model_error", message: "no" });

  it("ends when it is tidied: once, with its event, and kept for as long as its request", async () => {
    await admitted(first("done", { tell: "job.completed job.failed", target: "{}" }), first("not-yet", {}));
    await admitted(first("failed", { tell: "job.completed job.failed", target: "{}" }));
    await endAsBefore("done", "result", "{}");
    await endAsBefore("failed", "error", failure);
    for (let i = 0; i < 2; i++) await tidy();
    expect((await told()).toSorted((a = "", b = "") => a.localeCompare(b))).toEqual(["job.completed", "job.failed"]);
    expect(await lab.redis.pttl(jobKey(job("done")))).toBeLessThanOrEqual(600_000);
    expect(await lab.redis.hexists(jobKey(job("done")), "body")).toBe(0);
    expect(await lab.redis.hexists(jobKey(job("failed")), "body")).toBe(1);
    expect(await lab.redis.pttl(jobKey(job("not-yet")))).toBeGreaterThan(600_000);
    expect((await view("not-yet"))?.state).toBe("queued");
  });

  it("is tried once more where it is to be", async () => {
    await admitted(first("r1", { repeats: repeats(), wait: String(HOUR) }));
    await endAsBefore("r1", "error", failure);
    for (let i = 0; i < 2; i++) await tidy();
    expect(await view("r1")).toMatchObject({ state: "scheduled", made: 1 });
    expect(await told()).toEqual(["due"]);
    expect(await admitted(again("r1", await stage("r1"), "r1-2"))).toEqual(["admitted"]);
  });

  it("is left alone where this version has ended it", async () => {
    await admitted(first("r1", { tell: "job.failed", target: "{}" }));
    await fail("r1");
    expect(await told()).toEqual(["job.failed"]);
    await tidy();
    expect(await told()).toEqual(["job.failed"]);
  });
});
