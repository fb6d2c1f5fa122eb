/**
 * Each request in the queue counts once, in requests and bytes, for its model, its tenant and in
 * all, from its admission until it leaves. Repeated calls and deleted records do not change that.
 */
import { beforeEach, describe, expect, it } from "vitest";
import { UNLIMITED, type QueueLimits } from "#shared/queue/admission/limits.js";
import { readAllLoads } from "#shared/queue/pieces/load.js";
import { reapKept } from "#shared/queue/admission/reap-kept.js";
import { recount } from "#shared/queue/admission/recount.js";
import { withdraw } from "#shared/queue/admission/withdraw.js";
import { cancelRequest } from "#shared/queue/ends/cancel.js";
import { laneKeys, loadKey, loadTurnKey, outcomeKey } from "#shared/queue/keys.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { release } from "#shared/queue/work/read/release.js";
import type { Applicant } from "#shared/queue/admission/admit.js";
import {
  admit,
  IDLE_MS,
  LIMITS,
  onlyCall,
  put,
  result,
  SEQUENCE,
  takeOne,
  useLab,
  applicant,
} from "../support/queue/lab.js";
import { deleteFacts } from "../support/queue/facts.js";

const load = loadKey(undefined);
const NEVER = new AbortController().signal;

describe("what lies in the queue", () => {
  const lab = useLab();
  beforeEach(async () => {
    await lab.redis.flushall();
    await lab.redis.xgroup("CREATE", laneKeys(lab.lane).ready, "workers", "0", "MKSTREAM");
  });

  const plain = (request: string, body = "four", tenant = "acme"): Applicant => ({
    ...applicant(lab.lane, request, body),
    tenant,
  });
  const step = (request: string, { start = false, end = false } = {}): Applicant => ({
    ...plain(request),
    sequence: { name: SEQUENCE, start, end },
  });
  const admitAll = (applicants: readonly Applicant[], limits: QueueLimits = LIMITS, call = onlyCall()) =>
    admit(lab.redis, { gateway: "gw", limits }, applicants, call);
  const words = async (...of: Parameters<typeof admitAll>) =>
    (await admitAll(...of)).map((one) => (one.said === "queue-full" ? one.limit : one.said));
  /** All counters by field, except sequences and results. */
  const counted = async () => {
    const loads = (await readAllLoads(lab.redis, undefined)).filter(({ field }) => !/^(s:|kept)/.test(field));
    return Object.fromEntries(loads.map(({ field, requests, bytes }) => [field, [requests, bytes]]));
  };
  const ofAll = async () => (await counted())["all"];
  const address = (request: string) => ({ ...lab.addressOf(request), tenant: "acme" });
  const cancel = (request: string) =>
    cancelRequest(lab.redis, address(request), { code: "cancelled", message: "", ttlMs: 60_000, stream: false });
  const nextRound = async () => {
    await lab.redis.del(loadTurnKey(load));
    return recount(lab.redis, load, 60_000, NEVER);
  };

  it("is counted for its model, its tenant and in all", async () => {
    await admitAll([plain("r1"), plain("r2", "123456", "globex"), step("r3", { start: true }), step("r4")]);
    expect(await counted()).toEqual({
      [`m:${lab.lane.model}`]: [4, 18],
      "t:acme": [3, 12],
      "t:globex": [1, 6],
      all: [4, 18],
    });
  });

  it("counts while it waits, runs and is handed back, until it is committed", async () => {
    await admitAll([plain("r1"), step("r2", { start: true }), step("r3", { end: true })]);
    const held = await lab.take();
    await release(lab.queue, held);
    expect(await ofAll()).toEqual([3, 12]);
    for (let left = 3; left > 0;) {
      const some = await lab.take();
      const settlements = some.map((delivery) => result(delivery, put("s")));
      for (let copies = 0; copies < 2; copies++) await commit(lab.queue, settlements, IDLE_MS);
      left -= some.length;
      expect(await ofAll()).toEqual(left === 0 ? undefined : [left, 4 * left]);
    }
    expect(await counted()).toEqual({});
  });

  it("leaves when it is ended from outside, once; a step only when a worker has taken it out", async () => {
    await admitAll([plain("r1"), plain("r2"), step("r3", { start: true }), step("r4")]);
    for (let copies = 0; copies < 2; copies++) await cancel("r1");
    await lab.giveError("r2", "gone");
    expect(await ofAll()).toEqual([3, 12]);
    for (let copies = 0; copies < 2; copies++) await withdraw(lab.redis, address("r1"));
    await cancel("r3");
    await cancel("r4");
    expect(await ofAll()).toEqual([3, 12]);
    for (let rounds = 0; rounds < 2; rounds++) {
      const settlements = (await lab.take()).map((delivery) => result(delivery, put("s")));
      await commit(lab.queue, settlements, IDLE_MS);
    }
    expect(await counted()).toEqual({});
  });

  it("is counted once by all copies of a call, and not at all where it is refused or known", async () => {
    const call = onlyCall();
    const keyed = { ...plain("r1"), digest: "d" };
    for (let copies = 0; copies < 3; copies++) await admitAll([keyed, plain("r2"), step("r3")], LIMITS, call);
    expect(await words([keyed, { ...keyed, digest: "other" }])).toEqual(["known", "mismatch"]);
    expect(await ofAll()).toEqual([2, 8]);
  });

  it("has limits in requests and in bytes, for a model, a tenant and in all", async () => {
    const three = () => [plain("r1"), plain("r2"), plain("r3")];
    const refusing = async (limits: Partial<QueueLimits>) => {
      const said = await words(three(), { ...LIMITS, ...limits });
      for (const one of await lab.take()) await commit(lab.queue, [result(one, put("s"))], IDLE_MS);
      expect(await counted()).toEqual({});
      return said;
    };
    const after2 = (limit: string) => ["admitted", "admitted", limit];
    expect(await refusing({ queue: 2 })).toEqual(after2("model-requests"));
    expect(await refusing({ queueBytes: 11 })).toEqual(after2("model-bytes"));
    expect(await refusing({ tenantQueue: 2 })).toEqual(after2("tenant-requests"));
    expect(await refusing({ tenantQueueBytes: 11 })).toEqual(after2("tenant-bytes"));
    expect(await refusing({ totalBytes: 11 })).toEqual(after2("total-bytes"));
    expect(await refusing({ queueBytes: 12, tenantQueue: 3, totalBytes: 12 })).toEqual(Array(3).fill("admitted"));
  });

  it("of one tenant takes no room from another", async () => {
    const limits = { ...LIMITS, tenantQueue: 2 };
    expect(await words([plain("r1"), plain("r2"), plain("r3")], limits)).toContain("tenant-requests");
    expect(await words([plain("r4", "four", "globex")], limits)).toEqual(["admitted"]);
  });

  it("counts live sequences over all buckets", async () => {
    const begin = (bucket: number, id: string): Applicant => ({
      ...applicant({ ...lab.lane, bucket }, id, "x"),
      sequence: { name: `default:${id}`, start: true, end: false },
    });
    const terms = { gateway: "gw", limits: { ...LIMITS, liveSequences: 3 }, buckets: 4 };
    for (const bucket of [0, 1, 2]) {
      expect(await admit(lab.redis, terms, [begin(bucket, `u${bucket}`)])).toEqual([{ said: "admitted" }]);
    }
    expect(await admit(lab.redis, terms, [begin(3, "u3")])).toEqual([{ said: "too-many-sequences" }]);
    await lab.redis.del(laneKeys({ ...lab.lane, bucket: 1 }).live);
    expect(await admit(lab.redis, terms, [begin(3, "u4"), begin(3, "u5")])).toEqual([
      { said: "admitted" },
      { said: "too-many-sequences" },
    ]);
  });

  describe("is put right", () => {
    it("where nothing is wrong, by nothing, and not more often than it is to be", async () => {
      await admitAll([plain("r1"), step("r2", { start: true })]);
      const before = await counted();
      expect(await nextRound()).toBe(0);
      expect(await counted()).toEqual(before);
      await lab.redis.del(load);
      expect(await recount(lab.redis, load, 60_000, NEVER)).toBe(0);
      expect(await nextRound()).toBeGreaterThan(0);
      expect(await counted()).toEqual(before);
    });

    it("where the records of requests are gone, or a step of them was deleted", async () => {
      await admitAll([plain("r1"), plain("r2"), step("r3", { start: true })]);
      await lab.redis.del(outcomeKey(address("r1")), outcomeKey(address("r3")));
      expect(await nextRound()).toBe(1);
      // The step is still in the queue.
      expect(await ofAll()).toEqual([2, 8]);
      await deleteFacts(lab.redis, lab.lane, SEQUENCE);
      await nextRound();
      expect(await ofAll()).toEqual([1, 4]);
    });

    it.each(["load", "open", "kept"])("where %s is of another kind, which costs no request anything", async (kind) => {
      await admitAll([plain("r1")]);
      await lab.redis.del(`${kind}:all`);
      await lab.redis.set(`${kind}:all`, "by hand");
      expect(await words([plain("r2")])).toEqual(["admitted"]);
      const settlements = (await lab.take()).map((delivery) => result(delivery, put("s")));
      expect(await commit(lab.queue, settlements, IDLE_MS)).toEqual(["committed", "committed"]);
      await nextRound();
      expect(await counted()).toEqual({});
      await admitAll([plain("r3")]);
      expect(await ofAll()).toEqual([1, 4]);
    });

    it("where the sums of more tenants are gone than one command can write", async () => {
      for (let i = 0; i < 6; i++)
        await admitAll(
          Array.from({ length: 700 }, (_, j) => plain("r", "four", `t${i}-${j}`)),
          { ...LIMITS, queue: 10_000 },
        );
      const before = await counted();
      await lab.redis.del(load);
      await nextRound();
      expect(await counted()).toEqual(before);
      expect(await ofAll()).toEqual([4_200, 16_800]);
    });

    it("where there are more than one page of requests", async () => {
      for (let i = 0; i < 20; i++)
        await admitAll(
          Array.from({ length: 64 }, (_, j) => plain(`r${i}-${j}`)),
          { ...LIMITS, queue: 2_000 },
        );
      await lab.redis.hset(load, "all", "7 7", "t:nobody", "1 1");
      expect(await nextRound()).toBe(2);
      expect(await counted()).toEqual({
        [`m:${lab.lane.model}`]: [1_280, 5_120],
        "t:acme": [1_280, 5_120],
        all: [1_280, 5_120],
      });
    });
  });

  describe("the results of keyed requests", () => {
    const limits = { ...LIMITS, keptMs: 30_000, keptBytes: 1_000 };
    const keyed = (request: string): Applicant => ({ ...plain(request), digest: "d" });
    const body = Buffer.alloc(400, "x");
    const answer = async () => {
      const delivery = await lab.takeOne();
      await commit(lab.queue, [{ ...result(delivery, put("s")), outcome: { kind: "result", body } }], IDLE_MS);
    };
    const kept = async (request: string) => (await lab.redis.hstrlen(outcomeKey(address(request)), "body")) > 0;

    it("are kept within their budget, the newest; that they have ended stays known", async () => {
      for (const request of ["r1", "r2", "r3"]) {
        await admitAll([keyed(request)], limits);
        await answer();
      }
      await admitAll([plain("r4")], limits);
      expect(await Promise.all(["r1", "r2", "r3"].map(kept))).toEqual([false, true, true]);
      const [again] = await admitAll([keyed("r1")], limits);
      expect(again).toMatchObject({ said: "known", outcome: { kind: "result", body: Buffer.alloc(0) } });
      expect(await lab.take()).toHaveLength(1);
    });

    it("go when their time is over, and others do not count", async () => {
      await admitAll([keyed("r1"), { ...plain("r2"), outcomeTtlMs: 20_000 }], limits);
      const settlements = (await lab.take()).map((one) => ({
        ...result(one, put("s")),
        outcome: { kind: "result" as const, body },
      }));
      await commit(lab.queue, settlements, IDLE_MS);
      const [member] = await lab.redis.zrange("kept:all", "-inf", "+inf", "BYSCORE");
      expect(await lab.redis.zcard("kept:all")).toBe(1);
      await lab.redis.zadd("kept:all", 1, member ?? "");
      expect(await reapKept(lab.redis, load, UNLIMITED)).toBe(false);
      expect(await kept("r1")).toBe(false);
      expect(await kept("r2")).toBe(true);
      expect(await lab.redis.hget(load, "kept")).toBeNull();
    });

    it("are dropped in calls of bounded size, also while Redis is full", async () => {
      for (let i = 0; i < 4; i++) {
        await admitAll([keyed(`r${i}`)], { ...limits, keptBytes: 1_000_000 });
        await answer();
      }
      await lab.redis.config("SET", "maxmemory", "1");
      try {
        expect(await reapKept(lab.redis, load, 800)).toBe(false);
      } finally {
        await lab.redis.config("SET", "maxmemory", "0");
      }
      expect(await Promise.all([0, 1, 2, 3].map((i) => kept(`r${i}`)))).toEqual([false, false, true, true]);
    });
  });

  it("is set aside in part: the newest requests, of each the beginning, and not for ever", async () => {
    const queue = { ...lab.queue, setAside: { entries: 2, ageMs: 60_000 } };
    for (const request of ["r1", "r2", "r3"]) {
      await admitAll([plain(request, "y".repeat(10_000))]);
      await commit(queue, [result(await takeOne(queue), put("s"), "poison")], undefined);
    }
    const { dead } = laneKeys(lab.lane);
    const entries = await lab.redis.xrange(dead, "-", "+");
    expect(entries).toHaveLength(2);
    const fields = entries[0]?.[1] ?? [];
    expect(fields[fields.indexOf("frame") + 1]).toHaveLength(4_096);
    expect(fields[fields.indexOf("bytes of frame") + 1]).toBe("10000");
    expect(await lab.redis.pttl(dead)).toBeGreaterThan(0);
    expect((await lab.outcomeFields("r1"))["kind"]).toBeUndefined();
  });
});
