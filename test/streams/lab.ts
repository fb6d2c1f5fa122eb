/**
 * A fleet that generates, the streams that are asked of it, and what they are when nothing disturbs them. Each experiment keeps streams running while something breaks, and
 * has every one of them judged: by the log, by the undisturbed run, and by what was on NATS.
 */
import { Redis } from "ioredis";
import { settledFloor } from "../history/floor.js";
import { cleanFloor } from "../history/invariants.js";
import { startFleet, type Fleet, type FleetPlan } from "../setup/fleet.js";
import { seededRandom } from "../setup/random.js";
import { planAsks, type StreamAsk } from "./ask.js";
import { clientIsLog, ends, logIsReference, type StoredStream, type StreamViolation } from "./check.js";
import { StreamClient } from "./client.js";
import type { Manner, Reading } from "./history.js";
import { keepRunning } from "./load.js";
import { StreamNumbers, type StreamFigures } from "./numbers.js";
import { readStored } from "./stored.js";
import { watchSubjects } from "./subject.js";

export interface LabPlan {
  readonly seed: number;
  readonly fleet: FleetPlan;
  /** What the streams are asked of; one of the fleet's. */
  readonly model: string;
  /** Different asks; a load of more streams repeats them. */
  readonly asks: number;
  readonly tokens: readonly [number, number];
}

export interface StreamExperiment<Broke> {
  readonly name: string;
  readonly running: number;
  readonly manners?: readonly Manner[];
  /** Requests that are to be set aside meanwhile. */
  readonly poison?: number;
  readonly breaking: (fleet: Fleet, ended: EndedStreams) => Promise<Broke>;
}

/** Those of an experiment, so far. */
export interface EndedStreams {
  readonly count: number;
  /** Resolves when there are so many. */
  reach(count: number): Promise<void>;
}

export interface StreamFindings<Broke> {
  readonly broke: Broke;
  readonly violations: readonly StreamViolation[];
  /** Of which a violation tells, for keeping. */
  readonly suspicious: readonly Reading[];
  readonly figures: StreamFigures;
}

const QUIET_MS = 15_000;
/** A few are so many times fewer. */
const FEW = 8;
/** Of so many asks one may have two answers. */
const MOST_UNSETTLED = 20;
const allManners: readonly Manner[] = ["completions", "events", "generate_stream", "websocket"];

export class StreamLab {
  readonly fleet: Fleet;
  readonly redis: Redis;
  #asks: readonly StreamAsk[];
  /** By name of the ask: what an undisturbed run wrote. */
  readonly #reference = new Map<string, readonly string[]>();
  readonly #seed: number;
  #learned = 0;

  private constructor(fleet: Fleet, redis: Redis, asks: readonly StreamAsk[], seed: number) {
    this.fleet = fleet;
    this.redis = redis;
    this.#asks = asks;
    this.#seed = seed;
  }

  /** Starts the fleet, and has every ask answered once, undisturbed. */
  static async open(plan: LabPlan): Promise<StreamLab> {
    const { seed, model, tokens } = plan;
    const random = seededRandom(seed);
    const asks = planAsks({ count: plan.asks, model, tokens, random: random.fork("asks") });
    const fleet = await startFleet(plan.fleet);
    const redis = new Redis(fleet.redis.url, {
      protocol: 2,
      retryStrategy: () => 20,
      maxRetriesPerRequest: null,
      enableAutoPipelining: true,
    });
    redis.on("error", () => undefined); // outages are planned here; commands wait
    try {
      await fleet.whenServing();
      const lab = new StreamLab(fleet, redis, asks, seed);
      await lab.learn(asks);
      return lab;
    } catch (error) {
      redis.disconnect();
      await fleet.dispose();
      throw error;
    }
  }

  /** What is asked: all that has one undisturbed answer. */
  get asks(): readonly StreamAsk[] {
    return this.#asks;
  }

  /**
   * Has these answered undisturbed, all at a time and then a few. From now on other readings of them must be the same. Rounding differs between batches, and about once in a million
   * draws the number drawn lies so close beside the limit between two tokens that it decides: an ask whose two answers differ has no undisturbed one, and is left out.
   */
  async learn(asks: readonly StreamAsk[]): Promise<void> {
    const many = await this.#undisturbed(asks, asks.length);
    const few = await this.#undisturbed(asks, Math.ceil(asks.length / FEW));
    const unsettled = new Set(asks.filter(({ name }) => many.get(name)?.join() !== few.get(name)?.join()));
    for (const { name } of unsettled) {
      const at = many.get(name)?.findIndex((record, i) => record !== few.get(name)?.[i]);
      console.log(`${name}, seed ${this.#seed}: two undisturbed answers differ from record ${at} on; it is not asked`);
    }
    if (unsettled.size > asks.length / MOST_UNSETTLED) throw new Error(`${unsettled.size} asks have two answers each`);
    for (const [name, log] of many) this.#reference.set(name, log);
    this.#asks = this.#asks.filter((ask) => !unsettled.has(ask));
  }

  /** @returns logs by the asks' names. */
  async #undisturbed(asks: readonly StreamAsk[], running: number): Promise<Map<string, readonly string[]>> {
    const logs = new Map<string, readonly string[]>();
    await keepRunning({
      asks,
      client: this.client("undisturbed"),
      running,
      manners: allManners,
      name: `undisturbed-${this.#seed}-${this.#learned++}`,
      onEnd: async (reading) => {
        const { found, stored } = await this.judge(reading);
        if (found.length > 0) throw new Error(`failed undisturbed: ${JSON.stringify(found)}`);
        logs.set(reading.ask.name, stored.log);
      },
      enough: AbortSignal.abort(),
    });
    return logs;
  }

  referenceOf({ name }: StreamAsk): readonly string[] {
    const log = this.#reference.get(name);
    if (log === undefined) throw new Error(`${name} was never asked undisturbed`);
    return log;
  }

  client(name: string, onPiece?: (reading: Reading) => void): StreamClient {
    const settings = { urls: () => this.fleet.urls, random: seededRandom(this.#seed).fork(name) };
    return new StreamClient(onPiece === undefined ? settings : { ...settings, onPiece });
  }

  async experiment<Broke>(plan: StreamExperiment<Broke>): Promise<StreamFindings<Broke>> {
    const { name, running, manners = allManners, poison = 0, breaking } = plan;
    const { fleet, redis, asks } = this;
    const watch = await watchSubjects(fleet.nats.url, redis);
    const numbers = new StreamNumbers(fleet);
    const violations: StreamViolation[] = [];
    const suspicious: Reading[] = [];
    const ended = new Counter();
    const enough = new AbortController();
    const load = keepRunning({
      asks,
      running,
      manners,
      name: `${name}-${this.#seed}`,
      client: this.client(name),
      onEnd: async (reading) => {
        const { found, stored } = await this.judge(reading);
        numbers.add(reading, stored);
        violations.push(...found);
        if (found.length > 0) suspicious.push(reading);
        ended.add();
      },
      enough: enough.signal,
    });
    const broken = breaking(fleet, ended).finally(() => enough.abort());
    const [broke] = await Promise.all([broken, load]);
    violations.push(...(await this.floor(poison)));
    await watch.stop();
    violations.push(...watch.violations);
    return { broke, violations, suspicious, figures: numbers.figures(watch.checked()) };
  }

  /** One reading against the log and the undisturbed run. */
  async judge(reading: Reading): Promise<{ found: StreamViolation[]; stored: StoredStream }> {
    const { ask, id } = reading;
    const stored: StoredStream = id === undefined ? { log: [], takenAt: undefined } : await readStored(this.redis, id);
    const reference = this.#reference.get(ask.name);
    const found = [
      ...ends(reading, stored),
      ...clientIsLog(reading, stored.log),
      ...(reference === undefined ? [] : logIsReference(ask.name, stored.log, reference)),
    ];
    return { found, stored };
  }

  /** I1 and I11, once nothing moves any more. @param poison how many requests must have been set aside by now, in all */
  async floor(poison = 0): Promise<StreamViolation[]> {
    const floor = await settledFloor(this.redis, QUIET_MS);
    const left = cleanFloor({ ...floor, dead: [] }, new Map()).map(({ what }) => what);
    if (floor.dead.length !== poison) left.push(`${floor.dead.length} requests set aside, ${poison} planted`);
    const open = floor.openOutcomes.map((key) => ({ invariant: "I1", stream: key, what: "without outcome" }) as const);
    return [...left.map((what) => ({ invariant: "I11", stream: "floor", what }) as const), ...open];
  }

  async close(): Promise<void> {
    this.redis.disconnect();
    await this.fleet.dispose();
  }
}

class Counter implements EndedStreams {
  count = 0;
  readonly #waiting: { readonly until: number; readonly wake: () => void }[] = [];

  add(): void {
    this.count++;
    for (const { until, wake } of this.#waiting) if (this.count >= until) wake();
  }

  async reach(count: number): Promise<void> {
    if (this.count < count) await new Promise<void>((wake) => this.#waiting.push({ until: count, wake }));
  }
}
