/**
 * Random operations on one queue, with everything in Redis compared after each of them: two
 * workers, two versions of a model, stateless requests and steps, with and without their own
 * records, ready and parked. A seed decides the course of operations.
 */
import { describe, expect, it } from "vitest";
import { cancelRequest } from "#shared/queue/ends/cancel.js";
import { giveOutcome, giveOutcomeInQueue } from "#shared/queue/ends/give-outcome.js";
import { findOutcomes } from "#shared/queue/admission/find-outcomes.js";
import { recount } from "#shared/queue/admission/recount.js";
import { withdraw } from "#shared/queue/admission/withdraw.js";
import type { Applicant } from "#shared/queue/admission/admit.js";
import type { Delivery } from "#shared/queue/entry.js";
import {
  GROUP,
  laneKeys,
  loadKey,
  loadTurnKey,
  openKey,
  outcomeKey,
  requestInKey,
  sequencesKey,
  waitKey,
} from "#shared/queue/keys.js";
import { readRecord } from "#shared/queue/pieces/outcome.js";
import { usualTerms } from "#shared/queue/pieces/parking.js";
import { readSequences } from "#shared/queue/pieces/sequence.js";
import { pinText, type Lane } from "#shared/queue/address.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { createGroup } from "#shared/queue/work/read/create-group.js";
import { mendSequence } from "#shared/queue/work/commit/mend-sequence.js";
import { reapIdle } from "#shared/queue/reap-idle.js";
import { refill } from "#shared/queue/work/read/refill.js";
import { release } from "#shared/queue/work/read/release.js";
import { requeue } from "#shared/queue/work/read/requeue.js";
import type { StateChange } from "#shared/queue/work/commit/settlement.js";
import { lanesByKey } from "#shared/queue/work/stream.js";
import { take } from "#shared/queue/work/read/take.js";
import { takeFrom } from "#shared/queue/work/liveness/take-from.js";
import { admit, applicant, IDLE_MS, LIMITS, oneLane, put, result, useLab, type Lab } from "../../support/queue/lab.js";
import { seededRandom, type Random } from "../../support/fleet/random.js";

const full = process.env["BATON_FULL"] === "1";
const SEEDS = full ? 200 : 12;
const OPERATIONS = 120;
const LASTING_MS = 600_000;
const WINDOW = 3;
const cancelled = { code: "cancelled", message: "no", ttlMs: LASTING_MS, stream: false } as const;
const expired = { kind: "error", body: Buffer.from("expired") } as const;

class Course {
  readonly trail: string[] = [];
  readonly #lab: Lab;
  readonly #random: Random;
  readonly #lanes: readonly Lane[];
  readonly #consumers = ["a.1", "b.1"] as const;
  readonly #history: number;
  /** The deliveries that each worker holds, and the earlier deliveries. */
  readonly #held = new Map<string, Delivery[]>(this.#consumers.map((name) => [name, []]));
  readonly #past: { consumer: string; delivery: Delivery }[] = [];
  readonly #admitted: string[] = [];
  readonly #outcomes = new Map<string, string>();
  readonly #committed = new Map<string, number>();
  /** Requests whose outcomes were removed, as after a delivery. */
  readonly #swept = new Set<string>();
  readonly #operations: readonly [weight: number, run: () => Promise<unknown>][];

  constructor(lab: Lab, seed: number) {
    this.#lab = lab;
    this.#random = seededRandom(seed);
    this.#lanes = [lab.lane, { ...lab.lane, version: "2" }];
    this.#history = 1 + this.#upTo(2);
    this.#operations = [
      [8, () => this.#admit()],
      [8, () => this.#take()],
      [8, () => this.#commit()],
      [2, () => this.#commitLate()],
      [3, () => this.#cancel()],
      [2, () => this.#give(giveOutcome)],
      [2, () => this.#give(giveOutcomeInQueue)],
      [1, () => this.#withSome((request) => withdraw(lab.redis, lab.addressOf(request)))],
      [3, () => this.#release()],
      [1, () => this.#takeOver()],
      [1, () => this.#requeue()],
      [2, () => this.#recount()],
      [1, () => this.#mend()],
      [1, () => reapIdle(lab.queue, 100, IDLE_MS)],
      [1, () => refill(lab.redis, [{ lanes: lanesByKey(this.#lanes), room: this.#upTo(2) }])],
      [2, () => this.#sweep()],
    ];
  }

  async run(): Promise<void> {
    for (const lane of this.#lanes) await createGroup(this.#lab.redis, lane);
    const bag = this.#operations.flatMap(([weight, run]) => Array.from({ length: weight }, () => run));
    for (let i = 0; i < OPERATIONS; i++) {
      const operation = this.#random.pick(bag);
      this.trail.push(`${String(operation).slice(6)}: ${JSON.stringify(await operation())}`);
      await this.#compare();
    }
    await this.#drain();
    await this.#compare();
    await this.#expectNothingLeft();
  }

  #upTo(most: number): number {
    return this.#random.between(0, most);
  }

  #queueOf(consumer: string, lane = this.#lab.lane) {
    return oneLane(this.#lab.redis, lane, consumer);
  }

  #heldBy(consumer: string): Delivery[] {
    return this.#held.get(consumer) ?? [];
  }

  /** Removes a share of a worker's deliveries from its memory. */
  #letGoSome(consumer: string, share: number): Delivery[] {
    const some = this.#heldBy(consumer).filter(() => this.#random.unit() < share);
    this.#held.set(
      consumer,
      this.#heldBy(consumer).filter((delivery) => !some.includes(delivery)),
    );
    for (const delivery of some) this.#past.push({ consumer, delivery });
    return some;
  }

  #applicant(): Applicant {
    const { lane } = this.#lab;
    const request = `r${this.#admitted.length}-${this.#upTo(1e9)}`;
    const kind = this.#random.pick(["brief", "brief", "brief", "keyed", "background"]);
    const terms = {
      level: 1 + this.#upTo(1),
      weight: 1 + this.#upTo(2),
      delayMs: this.#random.chance(0.5) ? 1 : undefined,
    };
    return {
      ...applicant(
        this.#random.unit() < 0.8 ? lane : (this.#lanes[1] ?? lane),
        request,
        "x".repeat(1 + this.#upTo(20)),
      ),
      outcomeTtlMs: LASTING_MS,
      deadlineMs: LASTING_MS,
      digest: kind === "keyed" ? "d" : "",
      attendedMs: kind === "background" ? 0 : undefined,
      window: WINDOW,
      waiting: this.#random.unit() < 0.5 ? usualTerms : { ...usualTerms, ...terms },
      sequence:
        this.#random.unit() < 0.6
          ? { name: `default:u${this.#upTo(3)}`, start: this.#random.unit() < 0.3, end: this.#random.unit() < 0.15 }
          : undefined,
    };
  }

  async #admit() {
    const applicants = Array.from({ length: 1 + this.#upTo(5) }, () => this.#applicant());
    const said = await admit(this.#lab.redis, { gateway: "gw", limits: LIMITS }, applicants);
    for (const [i, one] of said.entries()) {
      expect(one.said).not.toBe("failed");
      if (one.said === "admitted") this.#admitted.push(applicants[i]?.request ?? "");
    }
    return said.map((one, i) => `${applicants[i]?.request} ${one.said}`);
  }

  async #take(consumer = this.#random.pick(this.#consumers), most = 1 + this.#upTo(3)) {
    const lanes = this.#random.unit() < 0.5 ? this.#lanes : this.#lanes.toReversed();
    const { deliveries } = await take(this.#lab.redis, consumer, lanesByKey(lanes), most);
    this.#heldBy(consumer).push(...deliveries);
    return deliveries.map(({ request }) => request);
  }

  #change(): StateChange {
    const lot = this.#random.unit();
    return lot < 0.6 ? put("state") : { action: lot < 0.75 ? "keep" : lot < 0.9 ? "drop" : "fail" };
  }

  async #commitAll(consumer: string, deliveries: readonly Delivery[]) {
    const settled = deliveries.map((delivery) =>
      result(delivery, delivery.sequence === undefined ? { action: "drop" } : this.#change()),
    );
    const fates = await commit(this.#queueOf(consumer), settled, IDLE_MS, this.#history);
    for (const [i, { request }] of deliveries.entries()) {
      if (fates[i] === "committed") this.#committed.set(request, (this.#committed.get(request) ?? 0) + 1);
    }
    return deliveries.map(({ request }, i) => `${request} ${fates[i]}`);
  }

  #commit(consumer = this.#random.pick(this.#consumers), share = 0.6) {
    return this.#commitAll(consumer, this.#letGoSome(consumer, share));
  }

  async #commitLate() {
    if (this.#past.length === 0) return "none";
    const { consumer, delivery } = this.#random.pick(this.#past);
    return this.#commitAll(consumer, [delivery]);
  }

  async #withSome(act: (request: string) => Promise<unknown>) {
    if (this.#admitted.length === 0) return "none";
    const request = this.#random.pick(this.#admitted.slice(-12));
    return [request, await act(request)];
  }

  #cancel() {
    return this.#withSome(async (request) => {
      const { said } = await cancelRequest(this.#lab.redis, this.#lab.addressOf(request), cancelled);
      if (this.#random.unit() < 0.5) await withdraw(this.#lab.redis, this.#lab.addressOf(request));
      return said;
    });
  }

  #give(give: typeof giveOutcomeInQueue) {
    return this.#withSome(async (request) => {
      return (await give(this.#lab.redis, this.#lab.addressOf(request), expired, LASTING_MS)).said;
    });
  }

  async #release() {
    const consumer = this.#random.pick(this.#consumers);
    const some = this.#letGoSome(consumer, 0.5);
    return [some.map(({ request }) => request), await release(this.#queueOf(consumer), some)];
  }

  async #takeOver() {
    const [consumer, other] = this.#random.unit() < 0.5 ? this.#consumers : this.#consumers.toReversed();
    if (consumer === undefined || other === undefined) return "none";
    const lane = this.#random.pick(this.#lanes);
    const { deliveries } = await takeFrom(this.#queueOf(consumer, lane), other, 2);
    // A worker knows its deliveries by their entries.
    const known = new Set(this.#heldBy(consumer).map(({ entry, lane: { version } }) => `${version} ${entry}`));
    this.#heldBy(consumer).push(...deliveries.filter(({ entry }) => !known.has(`${lane.version} ${entry}`)));
    return deliveries.map(({ request }) => request);
  }

  async #requeue() {
    const consumer = this.#random.pick(this.#consumers);
    const delivery = this.#heldBy(consumer).shift();
    if (delivery === undefined) return "none";
    this.#past.push({ consumer, delivery });
    await this.#lab.redis.xack(laneKeys(delivery.lane).ready, GROUP, delivery.entry);
    return [delivery.request, await requeue(this.#queueOf(consumer, delivery.lane), [delivery])];
  }

  async #recount() {
    const load = loadKey(undefined);
    await this.#lab.redis.del(loadTurnKey(load));
    expect(await recount(this.#lab.redis, load, 60_000, new AbortController().signal)).toBe(0);
  }

  async #mend() {
    expect(await mendSequence(this.#lab.queue, `default:u${this.#upTo(3)}`)).toBeUndefined();
  }

  async #sweep() {
    const { redis } = this.#lab;
    const left = [...this.#outcomes.keys()].filter((one) => !this.#swept.has(one));
    if (left.length === 0) return "none";
    const request = this.#random.pick(left);
    const key = outcomeKey(this.#lab.addressOf(request));
    if ((await redis.type(key)) !== "string") return "none";
    await redis.unlink(key);
    this.#swept.add(request);
    return request;
  }

  async #drain(): Promise<void> {
    for (let idle = 0; idle < 2;) {
      for (const consumer of this.#consumers) await this.#commit(consumer, 1);
      const taken = await this.#take("a.1", 10);
      const moved = taken.length > 0 || (await refill(this.#lab.redis, [{ lanes: lanesByKey(this.#lanes), room: 5 }]));
      idle = moved ? 0 : idle + 1;
    }
  }

  /** Compares all records in Redis with each other, and with the earlier ones. */
  async #compare(): Promise<void> {
    const { redis } = this.#lab;
    const fields = await redis.hgetall(openKey(loadKey(undefined)));
    const bytes = Object.values(fields).reduce((sum, field) => sum + Number(/^\d+/.exec(field)?.[0]), 0);
    expect(await redis.hget(loadKey(undefined), "all")).toBe(
      bytes === 0 ? null : `${Object.keys(fields).length} ${bytes}`,
    );
    await this.#compareRequests(fields);
    await this.#compareSequences();
  }

  async #compareRequests(fields: Readonly<Record<string, string>>): Promise<void> {
    if (this.#admitted.length === 0) return;
    const keys = this.#admitted.map((request) => outcomeKey(this.#lab.addressOf(request)));
    const found = await findOutcomes(this.#lab.redis, keys);
    for (const [i, request] of this.#admitted.entries()) {
      const said = found[i]?.said;
      const record = await readRecord(this.#lab.redis, this.#lab.addressOf(request));
      if (said === "no record") expect([request, this.#swept.has(request), record]).toEqual([request, true, undefined]);
      else expect([request, record?.kind !== undefined]).toEqual([request, said === "ended"]);
      if (said === "open") expect(fields).toHaveProperty([requestInKey(keys[i] ?? "")]);
      if (said !== "ended") continue;
      const outcome = `${record?.kind} ${record?.body?.toString()}`;
      expect(`${request} ${this.#outcomes.get(request) ?? outcome}`).toBe(`${request} ${outcome}`);
      this.#outcomes.set(request, outcome);
    }
  }

  async #compareSequences(): Promise<void> {
    const { redis, lane } = this.#lab;
    const names = (await redis.hkeys(sequencesKey(lane))).sort();
    const { live } = laneKeys(lane);
    expect((await redis.zrange(live, "0", "-1")).sort()).toEqual(names);
    for (const [i, facts] of (await readSequences(redis, lane, names)).entries()) {
      const name = names[i] ?? "";
      if (facts === undefined) throw new Error(`${name} is gone`);
      const [score] = await redis.zmscore(live, name);
      expect(score).not.toBeNull();
      if (facts.entry === "") {
        // The index may name an earlier time than a sequence's end, and no later one.
        expect(score === "inf" ? Infinity : Number(score), name).toBeLessThanOrEqual(facts.lapses);
        continue;
      }
      expect(await redis.llen(waitKey(lane, name))).toBe(facts.next - facts.done - 1);
      const on = this.#lanes.find((one) => pinText(one) === facts.on) ?? lane;
      if (facts.entry === "@") expect(await redis.hexists(laneKeys(on).parked, facts.request)).toBe(1);
      else {
        const [entry] = await redis.xrange(laneKeys(on).ready, facts.entry, facts.entry);
        expect(entry?.[1][1]).toContain(`${facts.request}|${name}|`);
      }
    }
  }

  async #expectNothingLeft(): Promise<void> {
    const { redis } = this.#lab;
    expect(await redis.exists(openKey(loadKey(undefined)))).toBe(0);
    const lasting = await redis.keys("*");
    expect(
      lasting.filter((key) => /^(queue|parked|window|wait|runs):|@/.test(key) && !key.startsWith("state:")),
    ).toEqual([]);
    for (const lane of this.#lanes) expect(await redis.xlen(laneKeys(lane).ready)).toBe(0);
    for (const request of this.#admitted) {
      expect([request, this.#outcomes.has(request)]).toEqual([request, true]);
      expect([request, (this.#committed.get(request) ?? 0) <= 1]).toEqual([request, true]);
    }
  }
}

describe("a queue under random operations", () => {
  const lab = useLab();

  it.each(Array.from({ length: SEEDS }, (_, i) => i + 1))(
    "agrees with itself, seed %i",
    { timeout: 120_000 },
    async (seed) => {
      await lab.redis.flushdb();
      const course = new Course(lab, seed);
      try {
        await course.run();
      } catch (error) {
        console.log(course.trail.slice(-25).join("\n"));
        throw error;
      }
    },
  );
});
