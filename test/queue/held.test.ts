/**
 * The sequences of a tenant, of all models, are counted by the scripts that make and remove
 * sequences. So the counts agree with the sequences after every script, and a limit refuses
 * exactly.
 */
import { beforeEach, describe, expect, it } from "vitest";
import { encodeCheckpoint, nameRun } from "#shared/contract/checkpoint.js";
import { recountSequences } from "#shared/queue/admission/recount-sequences.js";
import type { Applicant } from "#shared/queue/admission/admit.js";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import { heldKey, laneKeys, loadTurnKey, sequencesKey } from "#shared/queue/keys.js";
import { countHeld } from "#shared/queue/pieces/held.js";
import { notePinInUse } from "#shared/queue/pins.js";
import { realWorld } from "#shared/world.js";
import { reapIdle } from "#shared/queue/reap-idle.js";
import { endSequence } from "#shared/queue/sequences/end.js";
import { fork } from "#shared/queue/sequences/fork.js";
import { importSequence } from "#shared/queue/sequences/import.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { mendSequence } from "#shared/queue/work/commit/mend-sequence.js";
import { pinText } from "#shared/queue/address.js";
import { QueueLoads } from "../../gateway/admission/loads.js";
import { silentLog } from "../support/silent.js";
import { seededRandom } from "../support/fleet/random.js";
import { changeFacts, deleteFacts } from "../support/queue/facts.js";
import { admit, applicant, IDLE_MS, LIMITS, put, result, take, useLab } from "../support/queue/lab.js";

const BUCKETS = 4;
const terms = { maxIdleMs: IDLE_MS, liveSequences: 1_000, buckets: BUCKETS };

describe("the sequences of a tenant", () => {
  const lab = useLab();
  beforeEach(async () => {
    await lab.redis.flushall();
    await lab.redis.xgroup("CREATE", laneKeys(lab.lane).ready, "workers", "0", "MKSTREAM");
  });

  let count = 0;
  const step = (name: string, { start = false, end = false, mayBegin = false, most, ...where }: StepTerms = {}) => ({
    ...applicant({ ...lab.lane, ...where }, `r${count++}`, "x"),
    tenant: name.split(":")[0] ?? "",
    sequence: { name, start, end, mayBegin },
    liveSequences: most,
  });
  interface StepTerms {
    readonly start?: boolean;
    readonly end?: boolean;
    readonly mayBegin?: boolean;
    readonly most?: number;
    readonly bucket?: number;
    readonly model?: string;
  }
  const words = async (...applicants: Applicant[]) =>
    (await admit(lab.redis, { gateway: "gw", limits: LIMITS, buckets: BUCKETS }, applicants)).map(({ said }) => said);
  const begin = async (...names: string[]) => {
    expect(new Set(await words(...names.map((name) => step(name, { start: true }))))).toEqual(new Set(["admitted"]));
  };
  const runAll = async () => {
    for (let ready = await take(lab.queue); ready.length > 0; ready = await take(lab.queue)) {
      await commit(
        lab.queue,
        ready.map((one) => result(one, put("s"))),
        IDLE_MS,
      );
    }
  };
  const address = (name: string) => ({ bucket: lab.lane.bucket, model: lab.lane.model, name });
  const lapse = async (name: string) => {
    await changeFacts(lab.redis, lab.lane, name, { lapses: 1 });
    await lab.redis.zadd(laneKeys(lab.lane).live, 1, name);
  };
  const held = (tenant: string) => countHeld(lab.redis, BUCKETS, tenant);
  const bring = (name: string, mostOfTenant?: number) => {
    const checkpoint = encodeCheckpoint(nameRun("import"), []);
    const { version, digest } = lab.lane;
    const sequence = { step: 1, pin: { version, digest }, checkpoint };
    return importSequence(lab.redis, address(name), sequence, { ...terms, mostOfTenant });
  };

  /** Expects that the counts of all buckets are those of the sequences that there are. */
  async function expectRight(): Promise<void> {
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      const right: Record<string, number> = {};
      const add = (field: string) => (right[field] = (right[field] ?? 0) + 1);
      for (const key of await lab.redis.keys(`seqs:${bucketTag(bucket)}:*`)) {
        for (const name of await lab.redis.hkeys(key)) {
          add(`t:${name.split(":")[0]}`);
          add(`m:${key.split(":")[2]}`);
        }
      }
      const counted = Object.entries(await lab.redis.hgetall(heldKey(bucket)));
      expect(Object.fromEntries(counted.map(([field, text]) => [field, Number(text)]))).toEqual(right);
    }
  }

  it("count from the START to the END, of each tenant by itself, and once however often they begin", async () => {
    await begin("acme:u1", "acme:u2", "globex:u1");
    expect([await held("acme"), await held("globex")]).toEqual([2, 1]);
    await runAll();
    await begin("acme:u1");
    await expectRight();
    await runAll();
    expect(await words(step("acme:u1", { end: true }), step("globex:u1", { end: true }))).toEqual([
      "admitted",
      "admitted",
    ]);
    expect(await held("acme")).toBe(2);
    await runAll();
    expect([await held("acme"), await held("globex")]).toEqual([1, 0]);
    await expectRight();
    expect(await lab.redis.hexists(heldKey(lab.lane.bucket), "t:globex")).toBe(0);
  });

  it("count if a step without START begins them, and not if a step is refused", async () => {
    expect(await words(step("acme:u1", { mayBegin: true }), step("acme:u1", { mayBegin: true }))).toEqual([
      "admitted",
      "admitted",
    ]);
    expect(await words(step("acme:u2"))).toEqual(["start-required"]);
    expect(await held("acme")).toBe(1);
    await expectRight();
  });

  it("count no longer after a deletion, idle or busy, and after a failure", async () => {
    await begin("acme:u1", "acme:u2", "acme:u3");
    await endSequence(lab.redis, address("acme:u2"));
    expect(await held("acme")).toBe(3);
    const ready = await take(lab.queue);
    await commit(
      lab.queue,
      ready.map((one, i) => result(one, i === 2 ? { action: "fail" } : put("s"))),
      IDLE_MS,
    );
    expect(await held("acme")).toBe(1);
    await endSequence(lab.redis, address("acme:u1"));
    await endSequence(lab.redis, address("acme:u1"));
    expect(await held("acme")).toBe(0);
    await expectRight();
  });

  it("count until they have idled out, and once if they begin anew before they are removed", async () => {
    await begin("acme:u1", "acme:u2");
    await runAll();
    await lapse("acme:u1");
    await lapse("acme:u2");
    await begin("acme:u2");
    expect(await held("acme")).toBe(2);
    expect(await reapIdle(lab.queue, 10, IDLE_MS)).toBe(1);
    expect(await held("acme")).toBe(1);
    await expectRight();
  });

  it("count if they are forked or imported, once for a repeated call", async () => {
    await begin("acme:u1");
    await runAll();
    for (let i = 0; i < 2; i++) await fork(lab.redis, address("acme:u1"), "acme:u2", terms);
    expect(await bring("acme:u3")).toMatchObject({ said: "imported" });
    expect(await bring("acme:u3")).toEqual({ said: "exists" });
    expect(await held("acme")).toBe(3);
    await expectRight();
  });

  it("count no longer if their step is lost, or a person has spoiled or deleted their facts", async () => {
    await begin("acme:u1", "acme:u2");
    const [first] = await take(lab.queue);
    await lab.redis.xdel(laneKeys(lab.lane).ready, first?.entry ?? "");
    await mendSequence(lab.queue, first?.sequence ?? "acme:u1");
    expect(await held("acme")).toBe(1);
    await lab.redis.hset(sequencesKey(lab.lane), "acme:u2", "spoiled");
    await mendSequence(lab.queue, "acme:u2");
    await expectRight();
    expect(await held("acme")).toBe(0);
    await begin("acme:u3");
    await lab.redis.set(heldKey(lab.lane.bucket), "no hash");
    await begin("acme:u4");
    expect(await words(step("acme:u5", { start: true, most: 1 }))).toEqual(["admitted"]);
  });

  it("are refused beyond the tenant's limit, over all models and buckets, in one call and in many", async () => {
    const most = 3;
    const elsewhere = { start: true, most, model: `${lab.lane.model}-other`, bucket: 3 };
    expect(await words(step("acme:u1", { start: true, most }), step("acme:u1", elsewhere))).toEqual([
      "admitted",
      "admitted",
    ]);
    const fresh = ["acme:u2", "acme:u3", "globex:u2"].map((name) => step(name, { start: true, most }));
    expect(await words(...fresh)).toEqual(["admitted", "too-many-of-tenant", "admitted"]);
    // Steps of sequences that are there, and a START of one, are no further sequence.
    expect(await words(step("acme:u1", { most }), step("acme:u2", { start: true, most }))).toEqual([
      "admitted",
      "admitted",
    ]);
    expect(await words(step("acme:u4", { mayBegin: true, most }))).toEqual(["too-many-of-tenant"]);
    expect(await bring("acme:u4", most)).toEqual({ said: "too-many-of-tenant" });
    await runAll();
    expect(await fork(lab.redis, address("acme:u1"), "acme:u4", { ...terms, mostOfTenant: most })).toEqual({
      said: "too-many-of-tenant",
    });
    await endSequence(lab.redis, address("acme:u2"));
    expect(await fork(lab.redis, address("acme:u1"), "acme:u4", { ...terms, mostOfTenant: most })).toMatchObject({
      said: "forked",
    });
    expect(await words(step("acme:u5", { start: true, most }))).toEqual(["too-many-of-tenant"]);
    expect(await words(step("globex:u5", { start: true, most: 0 }))).toEqual(["too-many-of-tenant"]);
    await expectRight();
  });

  it("are counted again if processes that do not count have made or removed some", async () => {
    const { bucket, model } = lab.lane;
    const again = async (models = [model]) => {
      await lab.redis.del(loadTurnKey(heldKey(bucket)));
      return recountSequences(lab.redis, bucket, models, 60_000);
    };
    await begin("acme:u1", "acme:u2", "globex:u1");
    expect(await again([])).toBe(0);
    await deleteFacts(lab.redis, lab.lane, "acme:u1");
    await deleteFacts(lab.redis, lab.lane, "globex:u1");
    expect(await again([])).toBe(3);
    await expectRight();
    expect([await held("acme"), await held("globex")]).toEqual([1, 0]);
    // As if all of them were from an earlier version.
    await lab.redis.del(heldKey(bucket));
    expect(await again()).toBe(2);
    await expectRight();
    await lab.redis.del(heldKey(bucket));
    expect(await recountSequences(lab.redis, bucket, [model], 60_000)).toBe(0);
    await lab.redis.set(heldKey(bucket), "no hash");
    expect(await again()).toBe(2);
    await expectRight();
  });

  it("are counted again by a gateway, again and again", async () => {
    const { bucket, model, version, digest } = lab.lane;
    await begin("acme:u1", "acme:u2");
    await lab.redis.del(heldKey(bucket));
    const pin = { model, version, digest, streams: false, maxIdleMs: IDLE_MS };
    await notePinInUse(lab.redis, pin);
    const world = { ...realWorld, after: (ms: number, act: () => void) => realWorld.after(ms / 100, act) };
    const loads = new QueueLoads({ redis: lab.redis, limits: LIMITS, buckets: BUCKETS, world, log: silentLog });
    const stop = new AbortController();
    const watching = loads.watch(stop.signal);
    await expect.poll(() => held("acme"), { timeout: 20_000 }).toBe(2);
    stop.abort();
    await watching;
    await expectRight();
  });

  it.each([1, 2, 3])("agree with the counts after any history (seed %i)", { timeout: 60_000 }, async (seed) => {
    const random = seededRandom(seed);
    const below = (n: number) => random.between(0, n - 1);
    const name = () => `${["acme", "globex"][below(2)]}:u${below(6)}`;
    const acts: readonly (() => Promise<unknown>)[] = [
      () => words(step(name(), { start: true }), step(name(), { end: true }), step(name(), { mayBegin: true })),
      () => words(...Array.from({ length: 4 }, () => step(name(), { start: true, most: 4 }))),
      async () => {
        const settle = [put("s"), { action: "keep" }, { action: "drop" }, { action: "fail" }] as const;
        const ready = await take(lab.queue);
        const settled = ready.map((one) => result(one, settle[below(5)] ?? put("s")));
        await commit(lab.queue, settled.slice(below(2)), IDLE_MS);
      },
      () => endSequence(lab.redis, address(name())),
      () => fork(lab.redis, address(name()), name(), { ...terms, mostOfTenant: 5 }),
      () => bring(name(), below(2) === 0 ? 4 : undefined),
      async () => {
        const one = name();
        const facts = await lab.redis.hget(sequencesKey(lab.lane), one);
        if (facts?.includes(pinText(lab.lane)) === true) await lapse(one);
      },
      () => reapIdle(lab.queue, 3, IDLE_MS),
      () => mendSequence(lab.queue, name()),
    ];
    for (let i = 0; i < 150; i++) {
      await acts[below(acts.length)]?.();
      if (i % 5 === 0) await expectRight();
    }
    await expectRight();
    expect(Math.min(await held("acme"), await held("globex"))).toBeGreaterThanOrEqual(0);
  });
});
