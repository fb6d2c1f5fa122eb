/**
 * Any number of copies of an admission call take effect once, in any order and at any time after
 * the answer. A call that finds less in Redis than its gateway has acknowledged is not run.
 */
import { beforeEach, describe, expect, it } from "vitest";
import { pinOf } from "#shared/queue/address.js";
import { admit, CALLS_KEPT_MS, type Applicant } from "#shared/queue/admission/admit.js";
import { laneKeys, outcomeKey, sequencesKey } from "#shared/queue/keys.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { applicant, IDLE_MS, LIMITS, onlyCall, put, result, SEQUENCE, useLab } from "../support/queue/lab.js";
import { factsOf } from "../support/queue/facts.js";

describe("copies of admission calls", () => {
  const lab = useLab();
  let record: string;
  beforeEach(() => {
    ({ record } = onlyCall());
  });

  const plain = (request: string) => applicant(lab.lane, request, request);
  const step = (request: string, more: { start?: boolean; sequence?: string } = {}): Applicant => {
    const { start = false, sequence = SEQUENCE } = more;
    return { ...plain(request), sequence: { name: sequence, start, end: false } };
  };
  /** Sends a copy of this call. */
  const send = (number: number, applicants: readonly Applicant[], acknowledged = 0, limits = LIMITS) =>
    admit(lab.redis, { gateway: "gw", limits }, applicants, { record, number, acknowledged });
  /** Sends a copy, and returns only the words of the answers. */
  const words = async (...call: Parameters<typeof send>) => {
    const admitted = await send(...call);
    return admitted.said === "answered" ? admitted.admissions.map(({ said }) => said) : admitted.said;
  };
  const taken = async () => (await lab.take()).map(({ request }) => request);

  it("are answered like the first, and queue nothing", async () => {
    const first = [step("r1", { start: true }), plain("r2"), step("r3", { sequence: "default:u8" })];
    expect(await words(1, first)).toEqual(["admitted", "admitted", "start-required"]);
    expect(await words(1, first)).toEqual(["admitted", "admitted", "start-required"]);
    expect(await taken()).toEqual(["r1", "r2"]);
  });

  it("change nothing when the requests have ended and all that was noted of them is gone", async () => {
    expect(await words(1, [step("r1", { start: true })])).toEqual(["admitted"]);
    await commit(lab.queue, [result(await lab.takeOne(), put("s"))], IDLE_MS);
    await lab.redis.unlink(outcomeKey(lab.addressOf("r1")));
    expect(await words(1, [step("r1", { start: true })])).toEqual(["admitted"]);
    expect(await words(2, [], 1)).toEqual([]);
    expect(await words(1, [step("r1", { start: true })])).toBe("late");
    expect(await taken()).toEqual([]);
    expect((await factsOf(lab.redis, lab.lane, SEQUENCE))?.next).toBe(1);
  });

  it("are refused after a later call, whether or not they were the first to arrive", async () => {
    expect(await words(1, [plain("r1")])).toEqual(["admitted"]);
    // The gateway has given up call 2, without knowing whether the call ran.
    expect(await words(3, [plain("r3")], 1)).toEqual(["admitted"]);
    expect(await words(2, [plain("r2")], 1)).toBe("late");
    expect(await words(1, [plain("r1")])).toBe("late");
    expect(await taken()).toEqual(["r1", "r3"]);
  });

  it("stay refused when the first was, though there is room by now", async () => {
    await lab.admitStep({ request: "r0", start: true });
    expect(await words(1, [plain("r1")], 0, { ...LIMITS, queue: 1 })).toEqual(["queue-full"]);
    await commit(lab.queue, [result(await lab.takeOne(), put("s"))], IDLE_MS);
    expect(await words(1, [plain("r1")])).toEqual(["queue-full"]);
    expect(await taken()).toEqual([]);
  });

  it("find the outcome of a request that was known, as long as it is kept", async () => {
    const keyed = { ...plain("r1"), digest: "d" };
    expect(await words(1, [keyed])).toEqual(["admitted"]);
    const open = { said: "known", pin: pinOf(lab.lane), outcome: undefined };
    expect(await send(2, [keyed], 1)).toEqual({ said: "answered", admissions: [open] });
    await commit(lab.queue, [result(await lab.takeOne(), put("s"))], IDLE_MS);
    const outcome = { kind: "result", body: Buffer.from("answer") };
    expect(await send(2, [keyed], 1)).toEqual({ said: "answered", admissions: [{ ...open, outcome }] });
    await lab.redis.unlink(outcomeKey(lab.addressOf("r1")));
    expect(await words(2, [keyed], 1)).toEqual(["forgotten"]);
    expect(await taken()).toEqual([]);
  });

  it("name the same pin, also when the sequence has begun anew under another one", async () => {
    const other = { ...lab.lane, version: "2" };
    const ofOther = (request: string, start: boolean): Applicant => ({ ...step(request, { start }), lane: other });
    expect(await words(1, [ofOther("r1", true)])).toEqual(["admitted"]);
    const pinned = { said: "answered", admissions: [{ said: "pinned", pin: pinOf(other) }] };
    expect(await send(2, [step("r2")], 1)).toEqual(pinned);
    await lab.admitStep({ request: "r3", start: true });
    expect(await send(2, [step("r2")], 1)).toEqual(pinned);
  });

  it("are not run where Redis knows less than it has acknowledged, until the caller knows that", async () => {
    expect(await words(1, [plain("r1")])).toEqual(["admitted"]);
    const older = await lab.redis.getBuffer(record);
    expect(await words(2, [plain("r2")], 1)).toEqual(["admitted"]);
    await lab.redis.set(record, older ?? "");
    expect(await send(3, [plain("r3")], 2)).toEqual({ said: "gone-back", last: 1 });
    expect(await words(3, [plain("r3")], 1)).toEqual(["admitted"]);
    // The same for a call so late that its gateway's record has expired.
    await lab.redis.unlink(record);
    expect(await send(3, [plain("r3")], 1)).toEqual({ said: "gone-back", last: 0 });
    expect(await lab.redis.exists(record)).toBe(0);
    expect(await taken()).toEqual(["r1", "r2", "r3"]);
  });

  it("of a call that a full Redis refused are run when there is room", async () => {
    await lab.redis.config("SET", "maxmemory", "1");
    try {
      await expect(send(1, [plain("r1")])).rejects.toThrow(/^OOM/);
      expect(await lab.redis.exists(record)).toBe(0);
    } finally {
      await lab.redis.config("SET", "maxmemory", "0");
    }
    expect(await words(1, [plain("r1")])).toEqual(["admitted"]);
  });
});

describe("a call of many requests", () => {
  const lab = useLab();
  const terms = { gateway: "gw", limits: LIMITS };
  const said = async (applicants: readonly Applicant[]) => {
    const admitted = await admit(lab.redis, terms, applicants, onlyCall());
    return admitted.said === "answered" ? admitted.admissions.map(({ said }) => said) : [];
  };
  const step = (request: string, name: string, start = false): Applicant => {
    return { ...applicant(lab.lane, request, request), sequence: { name, start, end: false } };
  };

  it("costs five commands more than its requests, and leaves one key, for an hour", async () => {
    const calls = async () => {
      const stats = await lab.redis.info("commandstats");
      const of = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
      return { get: of("get"), set: of("set"), hmget: of("hmget"), hset: of("hset") };
    };
    const before = await calls();
    const call = onlyCall();
    const requests = Array.from({ length: 64 }, (_, i) => applicant(lab.lane, `r${i}`, "x"));
    await admit(lab.redis, terms, requests, call);
    const after = await calls();
    const made = [after.get - before.get, after.set - before.set, after.hmget - before.hmget];
    expect([...made, after.hset - before.hset - requests.length]).toEqual([1, 1, 1, 2]);
    expect(await lab.redis.strlen(call.record)).toBeLessThan(80);
    const ttl = await lab.redis.pttl(call.record);
    expect(ttl).toBeGreaterThan(CALLS_KEPT_MS - 60_000);
    expect(ttl).toBeLessThanOrEqual(CALLS_KEPT_MS);
  });

  it("admits the others where somebody has broken what belongs to one", async () => {
    await lab.redis.hset(sequencesKey(lab.lane), "default:u1", "no facts");
    const other = { ...lab.lane, version: "2" };
    await lab.redis.set(laneKeys(other).ready, "no stream");
    const ofOther = { ...applicant(lab.lane, "r4", "x"), lane: other };
    const steps = [step("r1", "default:u2", true), step("r2", "default:u1"), step("r3", "default:u2"), ofOther];
    expect(await said(steps)).toEqual(["admitted", "failed", "admitted", "failed"]);
    expect((await lab.take()).map(({ request }) => request)).toEqual(["r1"]);
  });

  it("lets no step overtake one that has to come again", async () => {
    const other = { ...lab.lane, version: "2" };
    const ofOther = (request: string, start = false) => ({ ...step(request, SEQUENCE, start), lane: other });
    expect(await said([step("r1", SEQUENCE, true)])).toEqual(["admitted"]);
    // The second and the fourth step could be admitted, but for the step before each.
    const steps = [
      ofOther("r2"),
      step("r3", SEQUENCE),
      ofOther("r4"),
      ofOther("r5", true),
      step("r6", "default:u9", true),
    ];
    expect(await said(steps)).toEqual(["pinned", "held-back", "pinned", "held-back", "admitted"]);
  });

  /** The answer of a Cluster's bucket that has this share of the limits. */
  const saidWithin = async (share: { requests?: number; bytes?: number; sequences?: number }, steps: Applicant[]) => {
    const { requests = -1, bytes = -1, sequences = 100 } = share;
    const models = { [lab.lane.model]: [requests, bytes, sequences] as const };
    const jobs = { models: { [lab.lane.model]: [requests, bytes] as const }, all: -1 };
    const limits = { models, tenants: { default: [-1, -1] as const }, all: -1, jobs, kept: -1, keep: 1e9, again: true };
    const shares = {
      prepare: () => undefined,
      limitsOf: () => limits,
      generationsOf: (_: number, { most }: { readonly most: number }) => most,
      quotaOf: (_: number, { most }: { readonly most: number }) => most,
      note: () => undefined,
      noteFull: () => undefined,
    };
    const admitted = await admit(lab.redis, { ...terms, shares }, steps, onlyCall());
    expect(admitted).toMatchObject({ said: "answered" });
    return admitted.said === "answered" ? admitted.admissions.map(({ said }) => said) : [];
  };

  it("lets a step come again with the START before it that finds no room", async () => {
    const steps = [step("r1", SEQUENCE, true), step("r2", SEQUENCE), step("r3", "default:u8")];
    expect(await saidWithin({ requests: 0 }, steps)).toEqual(["queue-full", "held-back", "start-required"]);
  });

  it("lets a step come again with the START before it for which there are too many sequences", async () => {
    const steps = [step("r1", SEQUENCE, true), step("r2", SEQUENCE), step("r3", "default:u8")];
    expect(await saidWithin({ sequences: 0 }, steps)).toEqual(["too-many-sequences", "held-back", "start-required"]);
  });

  it("lets a small step come again with the large one before it, and not what finds no room itself", async () => {
    await said([step("r0", SEQUENCE, true)]);
    const large = (request: string) => ({ ...step(request, SEQUENCE), frame: Buffer.alloc(1_000) });
    const steps = [large("r1"), step("r2", SEQUENCE), large("r3")];
    expect(await saidWithin({ bytes: 100 }, steps)).toEqual(["queue-full", "held-back", "queue-full"]);
  });

  it("tells all steps at once that may begin a sequence that there are too many", async () => {
    const mayBegin = (request: string) => {
      return { ...step(request, SEQUENCE), sequence: { name: SEQUENCE, start: false, end: false, mayBegin: true } };
    };
    const steps = [mayBegin("r1"), mayBegin("r2"), step("r3", SEQUENCE)];
    const expected = ["too-many-sequences", "too-many-sequences", "held-back"];
    expect(await saidWithin({ sequences: 0 }, steps)).toEqual(expected);
  });
});
