/**
 * A gateway's admission calls over a link that is cut, loses replies, stalls or is silent: one call
 * at a time, in the order of the requests' arrival, and each request at most once.
 */
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Admission } from "#shared/queue/admission/admit.js";
import { callsKey, laneKeys, waitKey } from "#shared/queue/keys.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { retrying } from "#shared/retry.js";
import { BucketCalls } from "../../gateway/admission/bucket-calls.js";
import type { LostCalls, Place, Unwritable } from "../../gateway/admission/call-line.js";
import { Proxy } from "../support/fleet/proxy.js";
import { applicant, LIMITS, useLab } from "../support/queue/lab.js";
import { silentLog } from "../support/silent.js";

const MiB = 1_048_576;

describe("a line of admission calls", () => {
  const lab = useLab();
  let proxy: Proxy;
  let redis: RedisClient;
  let record: string;
  let line: BucketCalls;
  let lost: LostCalls[];
  let arrivals: number;

  beforeEach(async () => {
    proxy = await Proxy.start(Number(new URL(lab.url).port));
    redis = connectRedis({ url: `redis://127.0.0.1:${proxy.port}`, name: "line", log: silentLog });
    await whenReady(redis, AbortSignal.timeout(60_000));
    const gateway = `gw-${randomUUID()}`;
    record = callsKey(gateway, undefined);
    lost = [];
    arrivals = 0;
    const terms = { gateway, limits: { ...LIMITS, queue: 10_000, queueBytes: 20 * MiB } };
    const onGoneBack = (calls: LostCalls) => lost.push(calls);
    line = new BucketCalls({ redis, forLarge: redis, terms, bucket: undefined, onGoneBack });
  });
  afterEach(async () => {
    redis.disconnect();
    await proxy.dispose();
  });

  const placeNow = (): Place => ({ order: arrivals++, since: performance.now() });
  const come = (request: string, place = placeNow()) => line.admit(applicant(lab.lane, request, request), place);
  const names = (count: number) => Array.from({ length: count }, (_, i) => `r${String(i).padStart(3, "0")}`);
  /** The names of all requests that were queued, in order. */
  const queuedNow = async () => {
    const entries = await lab.redis.xrange(laneKeys(lab.lane).ready, "-", "+");
    return entries.map(([, [, facts = ""]]) => facts.split("|")[0]?.replace("default:", ""));
  };
  const saidOf = (admissions: readonly (Admission | Unwritable)[]) => [...new Set(admissions.map(({ said }) => said))];
  const inputBytes = async () => Number(/total_net_input_bytes:(\d+)/.exec(await lab.redis.info("stats"))?.[1]);
  const scriptCalls = async () =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(await lab.redis.info("commandstats"))?.[1] ?? 0);

  it("refuses a large request that finds no room before its bytes are sent", async () => {
    const large = (request: string, digest = "") =>
      line.admit({ ...applicant(lab.lane, request, "x".repeat(8 * MiB)), digest }, placeNow());
    expect(saidOf([await large("a"), await large("b")])).toEqual(["admitted"]);
    const before = await inputBytes();
    expect(await large("c")).toEqual({ said: "queue-full", limit: "model-bytes" });
    expect((await inputBytes()) - before).toBeLessThan(MiB);
    // A key may belong to a known request, which only the call itself finds.
    expect(saidOf([await large("d", "digest")])).toEqual(["queue-full"]);
    expect(await come("e")).toEqual({ said: "admitted" });
  });

  it("admits small requests while the bytes of a large one are on their way", async () => {
    const slow = connectRedis({ url: `redis://127.0.0.1:${proxy.port}`, name: "large", log: silentLog });
    await whenReady(slow, AbortSignal.timeout(60_000));
    const terms = { gateway: "gw-two", limits: LIMITS };
    const both = { redis: lab.redis, forLarge: slow, terms, bucket: undefined, onGoneBack: () => undefined };
    const calls = new BucketCalls(both);
    const stalled = proxy.stall();
    const step = (request: string, bytes: number, sequence: string, number: number) => {
      const { length } = "x".repeat(bytes);
      const start = number === 1;
      const one = {
        ...applicant(lab.lane, request, "x".repeat(length)),
        sequence: { name: sequence, start, end: false },
      };
      return calls.admit(one, placeNow());
    };
    try {
      const large = step("large", 2 * MiB, "default:u1", 1);
      const behind = step("behind", 10, "default:u1", 2);
      expect(await step("other", 10, "default:u2", 1)).toEqual({ said: "admitted" });
      expect(await calls.admit(applicant(lab.lane, "alone", "alone"), placeNow())).toEqual({ said: "admitted" });
      expect(await queuedNow()).toEqual(["other", "alone"]);
      await stalled.deliver();
      proxy.heal();
      stalled.cut();
      expect(saidOf(await Promise.all([large, behind]))).toEqual(["admitted"]);
      expect(await queuedNow()).toEqual(["other", "alone", "large"]);
    } finally {
      slow.disconnect();
    }
  });

  it("repeats the call of a large one whose reply is lost, however long it waited for its turn", async () => {
    const large = (request: string, ageMs: number) => {
      const place = { order: arrivals++, since: performance.now() - ageMs };
      return line.admit({ ...applicant(lab.lane, request, "x".repeat(2 * MiB)), digest: request }, place);
    };
    expect(await large("first", 0)).toEqual({ said: "admitted" });
    const lost = proxy.loseReply(1);
    expect(await large("late", 3_000)).toEqual({ said: "admitted" });
    await lost;
    expect(await queuedNow()).toEqual(["first", "late"]);
  });

  it("admits no step before the end of a large one is known that was given up", async () => {
    const terms = { gateway: "gw-small-calls", limits: LIMITS };
    const limits = { bytes: 1_000, items: 64 };
    const settings = { redis, forLarge: redis, terms, bucket: undefined, onGoneBack: () => undefined, limits };
    const calls = new BucketCalls(settings);
    const step = (request: string, bytes: number, ageMs = 0, start = false) => {
      const sequence = { name: "default:u1", start, end: false };
      const place = { order: arrivals++, since: performance.now() - ageMs };
      return calls.admit({ ...applicant(lab.lane, request, request.padEnd(bytes, "x")), sequence }, place);
    };
    expect(await step("first", 10, 0, true)).toEqual({ said: "admitted" });
    const stalled = proxy.stall();
    const givenUp = step("large", 2_000, 1_900);
    await expect.poll(() => stalled.holds("large"), { interval: 1 }).toBe(true);
    proxy.blackHole("toServer");
    stalled.cut();
    await expect(givenUp).rejects.toThrow();
    proxy.heal();
    expect(await retrying(() => sure(step("next", 10)), { budgetMs: 20_000 })).toEqual({ said: "admitted" });
    await stalled.deliver();
    const waiting = await lab.redis.lrange(waitKey(lab.lane, "default:u1"), 0, -1);
    expect(waiting.map((one) => /large|next/.exec(one)?.[0])).toEqual(["next"]);
  });

  it.each([
    { kind: "small", bytes: 10, of: "large", lostBytes: 2_000 },
    { kind: "large", bytes: 2_000, of: "small", lostBytes: 10 },
  ])(
    "admits a step ($kind) behind another ($of) that was given up, beside others that go on",
    async ({ kind, bytes, lostBytes }) => {
      const sound = connectRedis({ url: lab.url, name: "sound", log: silentLog });
      await whenReady(sound, AbortSignal.timeout(60_000));
      const [first, second] = kind === "small" ? [sound, redis] : [redis, sound];
      const terms = { gateway: `gw-${randomUUID()}`, limits: { ...LIMITS, queue: 1_000_000 } };
      const limits = { bytes: 1_000, items: 64 };
      const settings = {
        redis: first,
        forLarge: second,
        terms,
        bucket: undefined,
        onGoneBack: () => undefined,
        limits,
      };
      const calls = new BucketCalls(settings);
      const step = (request: string, length: number, start = false, ageMs = 0) => {
        const sequence = { name: "default:u1", start, end: false };
        const place = { order: arrivals++, since: performance.now() - ageMs };
        return calls.admit({ ...applicant(lab.lane, request, request.padEnd(length, "x")), sequence }, place);
      };
      const stopping = new AbortController();
      let others = 0;
      let floods: Promise<void>[] = [];
      const flood = async () => {
        while (!stopping.signal.aborted) {
          const name = `other-${others++}`;
          await calls.admit(applicant(lab.lane, name, name.padEnd(bytes, "x")), placeNow());
        }
      };
      try {
        expect(await step("first", bytes, true)).toEqual({ said: "admitted" });
        const stalled = proxy.stall();
        const givenUp = step("given-up", lostBytes, false, 1_900);
        await expect.poll(() => stalled.holds("given-up"), { interval: 1 }).toBe(true);
        proxy.blackHole("toServer");
        stalled.cut();
        await expect(givenUp).rejects.toThrow();
        proxy.heal();
        await expect.poll(() => redis.status).toBe("ready");
        floods = [flood(), flood(), flood(), flood()];
        await expect.poll(() => others).toBeGreaterThan(20);
        expect(await step("behind", bytes)).toEqual({ said: "admitted" });
      } finally {
        stopping.abort();
        await Promise.allSettled(floods);
        sound.disconnect();
      }
    },
  );

  it("gathers what comes while a call is under way", async () => {
    await come("first");
    const before = await scriptCalls();
    proxy.blackHole("toClient");
    const coming = [come("under-way")];
    await expect.poll(async () => (await scriptCalls()) - before).toBe(1);
    for (const name of names(100)) coming.push(come(name));
    proxy.heal();
    expect(saidOf(await Promise.all(coming))).toEqual(["admitted"]);
    expect((await scriptCalls()) - before).toBe(3);
    expect(await queuedNow()).toEqual(["first", "under-way", ...names(100)]);
  });

  it("keeps the order in which requests came, and each of them once, whatever replies are lost", async () => {
    proxy.loseEvery(7);
    const all: string[] = [];
    const coming: Promise<Admission | Unwritable>[] = [];
    // On a slower machine a call holds more requests, so there are fewer replies to lose.
    for (const name of names(5_000)) {
      if (proxy.counts.lostReplies > 3) break;
      all.push(name);
      coming.push(come(name));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    expect(saidOf(await Promise.all(coming))).toEqual(["admitted"]);
    expect(await queuedNow()).toEqual(all);
    expect(proxy.counts.lostReplies).toBeGreaterThan(3);
  });

  it("lets a request that comes again go before those that came after it", async () => {
    const place = placeNow();
    const coming = [come("later"), come("again", place)];
    expect(saidOf(await Promise.all(coming))).toEqual(["admitted"]);
    expect(await queuedNow()).toEqual(["again", "later"]);
  });

  it("goes on with the next number where it gave a call up, which then changes nothing", async () => {
    await come("first");
    const stalled = proxy.stall();
    const givenUp = come("given-up", { order: arrivals++, since: performance.now() - 1_900 });
    await expect.poll(() => stalled.holds("given-up"), { interval: 1 }).toBe(true);
    proxy.blackHole("toServer");
    stalled.cut();
    await expect(givenUp).rejects.toThrow();
    proxy.heal();
    expect(await retrying(() => sure(come("next")), { budgetMs: 20_000 })).toEqual({ said: "admitted" });
    await stalled.deliver();
    expect(await queuedNow()).toEqual(["first", "next"]);
  });

  it("sends away what it could not send in time, and says that it was not admitted", async () => {
    await come("first");
    const stalled = proxy.stall();
    const under = come("under-way");
    await expect.poll(() => stalled.holds("under-way"), { interval: 1 }).toBe(true);
    const overdue = come("r1", { order: arrivals++, since: performance.now() - 10_000 });
    await expect(under).rejects.toThrow();
    expect(await overdue).toEqual({ said: "unwritable" });
    expect(await retrying(() => sure(come("next")), { budgetMs: 20_000 })).toEqual({ said: "admitted" });
    expect((await queuedNow()).filter((name) => name === "r1")).toEqual([]);
  });

  it("admits what has waited for long while a call was answered slowly", async () => {
    await come("first");
    proxy.blackHole("toClient");
    const slow = come("slow");
    await expect.poll(() => queuedNow(), { interval: 1 }).toEqual(["first", "slow"]);
    const waited = come("waited", { order: arrivals++, since: performance.now() - 3_000 });
    proxy.heal();
    expect(saidOf(await Promise.all([slow, waited]))).toEqual(["admitted"]);
    expect(await queuedNow()).toEqual(["first", "slow", "waited"]);
  });

  it("says that a full Redis has refused a call, and goes on when there is room", async () => {
    await come("first");
    await lab.redis.config("SET", "maxmemory", "1");
    try {
      expect(await come("refused")).toEqual({ said: "unwritable" });
    } finally {
      await lab.redis.config("SET", "maxmemory", "0");
    }
    expect(await come("next")).toEqual({ said: "admitted" });
    expect(lost).toEqual([]);
    expect(await queuedNow()).toEqual(["first", "next"]);
  });

  it("notices by the next call that Redis has gone back, and goes on", async () => {
    await come("first");
    const older = await lab.redis.getBuffer(record);
    await come("second");
    await lab.redis.set(record, older ?? "");
    expect(await come("third")).toEqual({ said: "admitted" });
    expect(lost).toEqual([{ record, acknowledged: 2, last: 1 }]);
    expect(await come("fourth")).toEqual({ said: "admitted" });
    await lab.redis.del(record);
    expect(await come("fifth")).toEqual({ said: "admitted" });
    expect(lost.slice(1)).toEqual([{ record, acknowledged: 4, last: 0 }]);
  });

  it("notices it without a request, too, and keeps its record when nothing comes", async () => {
    line.confirm();
    await come("first");
    await lab.redis.pexpire(record, 60_000);
    line.confirm();
    await expect.poll(() => lab.redis.pttl(record)).toBeGreaterThan(60_000);
    await lab.redis.flushall();
    line.confirm();
    await expect.poll(() => lost).toEqual([{ record, acknowledged: 2, last: 0 }]);
    await expect.poll(() => lab.redis.exists(record)).toBe(1);
  });
});

/** Rejects if the request was sent away, so that the caller sends it again. */
async function sure(coming: Promise<Admission | Unwritable>): Promise<Admission> {
  const admission = await coming;
  if (admission.said === "unwritable") throw new Error("sent away");
  return admission;
}
