/**
 * The short scripts of the hot path are the same machine as the long scripts: a random history of
 * admissions, commits, kills, repeated calls, cancellations, forks and deletions gives the same
 * answers by both ways, and ends in the same keys.
 */
import { describe, expect, it } from "vitest";
import { encodeCheckpoint } from "#shared/contract/checkpoint.js";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { storeOutcome } from "#shared/contract/outcome.js";
import type { Lane } from "#shared/queue/address.js";
import type { Applicant } from "#shared/queue/admission/admit.js";
import { cancelRequest } from "#shared/queue/ends/cancel.js";
import { FAILED, type Delivery } from "#shared/queue/entry.js";
import { endSequence } from "#shared/queue/sequences/end.js";
import { fork } from "#shared/queue/sequences/fork.js";
import { rewind } from "#shared/queue/sequences/rewind.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import type { Settlement, StateChange } from "#shared/queue/work/commit/settlement.js";
import type { ModelQueue } from "#shared/queue/work/lane.js";
import { readRecord } from "#shared/queue/pieces/outcome.js";
import { takeFrom } from "#shared/queue/work/liveness/take-from.js";
import { createGroup } from "#shared/queue/work/read/create-group.js";
import { lanesByKey } from "#shared/queue/work/stream.js";
import { take } from "#shared/queue/work/read/take.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { seededRandom, type Random } from "../support/fleet/random.js";
import { admit, applicant, IDLE_MS, LIMITS, useLab } from "../support/queue/lab.js";
import { changeFacts, factsOf } from "../support/queue/facts.js";
import { keysOf } from "./all-keys.js";

const SEEDS = Array.from({ length: 12 }, (_, i) => 4_100 + i);
const MOVES = 150;
const BUCKETS = 2;
const TENANTS = [DEFAULT_TENANT, "acme"];
/** A longer outcome does not pass through the script. */
const LONG = "x".repeat(1_500);
const STATE = { name: "sum", datatype: "INT32", shape: [1], data: Buffer.alloc(4) } as const;

/** A history that a seed decides, by one of the two ways. */
class History {
  readonly answers: unknown[] = [];
  readonly #redis: RedisClient;
  readonly #random: Random;
  readonly #lanes: readonly Lane[];
  readonly #short: boolean;
  readonly #queues: readonly ModelQueue[];
  /** The deliveries of each worker. */
  readonly #held: Delivery[][] = [[], []];
  #last: { readonly worker: number; readonly settlements: readonly Settlement[] } | undefined;
  #count = 0;

  constructor(redis: RedisClient, seed: number, lane: Lane, shortScripts: boolean) {
    this.#redis = redis;
    this.#random = seededRandom(seed);
    this.#short = shortScripts;
    this.#lanes = Array.from({ length: BUCKETS }, (_, bucket) => ({ ...lane, bucket }));
    const { model, version, digest } = lane;
    this.#queues = ["a.1", "b.1"].map((consumer) => {
      return { redis, consumer, model, version, digest, buckets: BUCKETS, shortScripts };
    });
  }

  async run(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => createGroup(this.#redis, lane)));
    const moves = [
      () => this.#admit(),
      () => this.#admit(),
      () => this.#take(),
      () => this.#take(),
      () => this.#commit(),
      () => this.#commit(),
      () => this.#commit(),
      () => this.#repeat(),
      () => this.#takeOver(),
      () => this.#cancel(),
      () => this.#change(),
      () => this.#lapse(),
    ];
    for (let i = 0; i < MOVES; i++) this.answers.push(await this.#random.pick(moves)());
  }

  async #admit() {
    const applicants = Array.from({ length: this.#random.between(1, 6) }, () => {
      const { lane, tenant, name } = this.#sequence();
      const one = applicant(lane, `r${this.#count++}`, "frame");
      const isBrief = this.#random.chance(0.85);
      const start = this.#random.chance(0.3);
      return {
        ...one,
        tenant,
        attendedMs: isBrief ? undefined : 0,
        digest: isBrief ? "" : `d${this.#count}`,
        window: 3,
        sequence: { name, start, end: this.#random.chance(0.05), mayBegin: !start && this.#random.chance(0.4) },
      };
    });
    const gateway = this.#random.pick(["gw-1", "gw-2"]);
    const limits = { ...LIMITS, keptMs: 120_000 };
    return admit(this.#redis, { gateway, limits, buckets: BUCKETS, shortScripts: this.#short }, applicants);
  }

  async #take() {
    const worker = this.#random.between(0, 1);
    const { deliveries } = await take(this.#redis, this.#consumer(worker), lanesByKey(this.#lanes), 3);
    this.#held[worker]?.push(...deliveries);
    return deliveries.map(({ request, from, step, number }) => ({ request, from, step, number }));
  }

  async #commit() {
    const worker = this.#random.between(0, 1);
    const held = this.#held[worker] ?? [];
    const some = held.splice(0, this.#random.between(1, 4));
    const together: Settlement[] = [];
    const alone: Settlement[] = [];
    for (const delivery of some) {
      const { settlement, isUsual } = this.#settlement(delivery);
      (isUsual && (await this.#isAsUsual(delivery)) ? together : alone).push(settlement);
    }
    this.#last = { worker, settlements: together };
    const fates = [await this.#send(worker, together)];
    for (const settlement of alone) fates.push(await this.#send(worker, [settlement]));
    return fates;
  }

  /**
   * Whether the short script commits this step if its settlement is as usual. If a call has other
   * steps, too, the short way and then the long way make room twice, and queue other requests in
   * another order.
   */
  async #isAsUsual(delivery: Delivery) {
    const facts = await factsOf(this.#redis, delivery.lane, delivery.sequence ?? "");
    const record = await readRecord(this.#redis, delivery);
    const { brief, end, from, step } = delivery;
    return brief && !end && from !== FAILED && facts?.next === step && record?.kind === undefined;
  }

  /** Sends the last commit again, as after a lost reply. */
  async #repeat() {
    return this.#last && this.#send(this.#last.worker, this.#last.settlements);
  }

  /** The second worker takes over what the first owns. The first may still commit. */
  async #takeOver() {
    const [queue] = this.#queues.slice(1);
    if (queue === undefined) return undefined;
    const taken = await Promise.all(this.#lanes.map((lane) => takeFrom({ ...queue, lane }, this.#consumer(0), 2)));
    const deliveries = taken.flatMap((one) => one.deliveries);
    this.#held[1]?.push(...deliveries);
    return deliveries.map(({ request }) => request);
  }

  async #cancel() {
    const { lane, tenant } = this.#sequence();
    const request = `r${this.#random.between(Math.max(0, this.#count - 8), this.#count)}`;
    const address = { bucket: lane.bucket, model: lane.model, tenant, request };
    const ending = { code: "cancelled", message: "no more", ttlMs: 60_000, stream: false } as const;
    return (await cancelRequest(this.#redis, address, ending)).said;
  }

  /** Lets the idle time of a sequence pass. */
  async #lapse() {
    const { lane, name } = this.#sequence();
    const facts = await factsOf(this.#redis, lane, name);
    if (facts?.entry === "") await changeFacts(this.#redis, lane, name, { lapses: 1 });
  }

  /** Changes a sequence as a whole. */
  async #change() {
    const { lane, name } = this.#sequence();
    const address = { bucket: lane.bucket, model: lane.model, name };
    const terms = { maxIdleMs: IDLE_MS, liveSequences: 100, buckets: BUCKETS };
    const changes = [
      () => endSequence(this.#redis, address),
      () => fork(this.#redis, address, this.#sequence(lane).name, terms),
      () => rewind(this.#redis, address, this.#random.between(1, 3), IDLE_MS),
    ];
    return (await this.#random.pick(changes)()).said;
  }

  /** @param only the lane of the sequence; absent: any lane */
  #sequence(only?: Lane) {
    const lane = only ?? this.#random.pick(this.#lanes);
    const tenant = this.#random.pick(TENANTS);
    return { lane, tenant, name: `${tenant}:u${this.#random.between(1, 3)}` };
  }

  #settlement(delivery: Delivery): { readonly settlement: Settlement; readonly isUsual: boolean } {
    const isUsual = this.#random.chance(0.7);
    const version = `v${this.#count++}`;
    const put: StateChange = { action: "put", version, checkpoint: encodeCheckpoint(version, [STATE]).frame };
    const state = isUsual
      ? put
      : this.#random.pick<StateChange>([put, { action: "keep" }, { action: "drop" }, { action: "fail" }]);
    const kind = isUsual || this.#random.chance(0.5) ? "result" : "error";
    const body = Buffer.from(this.#random.chance(0.5) ? LONG : "answer");
    const outcome =
      kind === "result" ? ({ kind, body } as const) : ({ kind, code: "model_error", message: "no" } as const);
    const deadReason = kind === "error" && this.#random.chance(0.5) ? "poison_request" : undefined;
    return { settlement: { delivery, outcome: storeOutcome(outcome), state, deadReason }, isUsual };
  }

  #send(worker: number, settlements: readonly Settlement[]) {
    const queue = this.#queues[worker];
    if (queue === undefined) throw new Error("no such worker");
    return commit(queue, settlements, IDLE_MS);
  }

  #consumer(worker: number): string {
    return this.#queues[worker]?.consumer ?? "";
  }
}

describe("a random history", () => {
  const lab = useLab();

  it.each(SEEDS)(
    "with seed %d has the same answers by short scripts as by long ones, and ends in the same keys",
    async (seed) => {
      const ends = [];
      for (const shortScripts of [true, false]) {
        await lab.redis.flushall();
        const history = new History(lab.redis, seed, { ...lab.lane, model: "m" }, shortScripts);
        await history.run();
        ends.push({ answers: history.answers, keys: await keysOf(lab.redis) });
      }
      expect(ends[0]).toEqual(ends[1]);
    },
  );
});

describe("a call with usual steps", () => {
  const lab = useLab();
  const step = (request: string, id: string, start = true) => ({
    ...applicant(lab.lane, request, request),
    attendedMs: undefined,
    sequence: { name: `default:${id}`, start, end: false },
  });
  const usual = (delivery: Delivery, version: string, body: string): Settlement => {
    const outcome = storeOutcome({ kind: "result", body: Buffer.from(body) });
    const { frame: checkpoint } = encodeCheckpoint(version, [STATE]);
    return { delivery, outcome, state: { action: "put", version, checkpoint }, deadReason: undefined };
  };
  const lengthOf = async (request: string) => (await readRecord(lab.redis, lab.addressOf(request)))?.body?.length;
  const admitAll = (asked: readonly Applicant[]) =>
    admit(lab.redis, { gateway: "gw", limits: { ...LIMITS, keptMs: 120_000 } }, asked);

  it("and others commits each of them, with its outcome and its checkpoint", async () => {
    await admitAll([step("a1", "a"), step("b1", "b"), step("b2", "b", false), step("c1", "c")]);
    const deliveries = await lab.take();
    expect(deliveries.map(({ request }) => request)).toEqual(["a1", "b1", "c1"]);
    const settlements = deliveries.map((delivery, i) => usual(delivery, `v${i}`, i === 2 ? "short" : LONG));
    expect(await commit(lab.queue, settlements, IDLE_MS)).toEqual(["committed", "committed", "committed"]);
    expect(await commit(lab.queue, settlements, IDLE_MS)).toEqual(["already", "already", "already"]);
    for (const [i, id] of ["a", "b", "c"].entries()) {
      expect(await factsOf(lab.redis, lab.lane, `default:${id}`)).toMatchObject({ done: 1, at: `v${i}` });
      expect(await lab.statesOf(`default:${id}`)).toHaveLength(1);
      expect(await lengthOf(`${id}1`)).toBe(i === 2 ? 5 : 1_500);
    }
    expect(await lab.take()).toMatchObject([{ request: "b2", from: "v1" }]);
    expect(await lab.redis.keys("*@a.1.*")).toEqual([]);
  });

  it("commits them while Redis is full", async () => {
    await admitAll([step("d1", "d"), step("e1", "e")]);
    const settlements = (await lab.take()).map((delivery, i) => usual(delivery, `w${i}`, i === 0 ? "short" : LONG));
    await lab.redis.config("SET", "maxmemory", "1");
    try {
      expect(await commit(lab.queue, settlements, IDLE_MS)).toEqual(["committed", "committed"]);
      expect(await commit(lab.queue, settlements, IDLE_MS)).toEqual(["already", "already"]);
    } finally {
      await lab.redis.config("SET", "maxmemory", "0");
    }
    expect([await lengthOf("d1"), await lengthOf("e1")]).toEqual([5, 1_500]);
    expect(await factsOf(lab.redis, lab.lane, "default:e")).toMatchObject({ done: 1, at: "w1" });
    expect(await lab.statesOf("default:e")).toHaveLength(1);
  });
});
