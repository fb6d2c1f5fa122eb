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
  readonly breaking: (fleet: Fleet) => Promise<Broke>;
}

export interface StreamFindings<Broke> {
  readonly broke: Broke;
  readonly violations: readonly StreamViolation[];
  /** Of which a violation tells, for keeping. */
  readonly suspicious: readonly Reading[];
  readonly figures: StreamFigures;
}

const QUIET_MS = 15_000;
const allManners: readonly Manner[] = ["completions", "events", "generate_stream"];

export class StreamLab {
  readonly fleet: Fleet;
  readonly redis: Redis;
  readonly asks: readonly StreamAsk[];
  /** By name of the ask: what an undisturbed run wrote. */
  readonly reference: ReadonlyMap<string, readonly string[]>;
  readonly #seed: number;

  private constructor(
    fleet: Fleet,
    redis: Redis,
    asks: readonly StreamAsk[],
    reference: ReadonlyMap<string, readonly string[]>,
    seed: number,
  ) {
    this.fleet = fleet;
    this.redis = redis;
    this.asks = asks;
    this.reference = reference;
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
      const lab = new StreamLab(fleet, redis, asks, await undisturbed(fleet, redis, asks, seed), seed);
      return lab;
    } catch (error) {
      redis.disconnect();
      await fleet.dispose();
      throw error;
    }
  }

  client(name: string, urls = () => this.fleet.urls): StreamClient {
    return new StreamClient({ urls, random: seededRandom(this.#seed).fork(name) });
  }

  async experiment<Broke>({
    name,
    running,
    manners = allManners,
    breaking,
  }: StreamExperiment<Broke>): Promise<StreamFindings<Broke>> {
    const { fleet, redis, asks } = this;
    const watch = await watchSubjects(fleet.nats.url, redis);
    const numbers = new StreamNumbers(fleet);
    const violations: StreamViolation[] = [];
    const suspicious: Reading[] = [];
    const enough = new AbortController();
    const judge = async (reading: Reading) => {
      const { found, stored } = await this.judge(reading);
      numbers.add(reading, stored);
      violations.push(...found);
      if (found.length > 0) suspicious.push(reading);
    };
    const load = keepRunning({
      asks,
      running,
      manners,
      name: `${name}-${this.#seed}`,
      client: this.client(name),
      onEnd: judge,
      enough: enough.signal,
    });
    const broken = breaking(fleet).finally(() => enough.abort());
    const [broke] = await Promise.all([broken, load]);
    violations.push(...(await this.floor()));
    await watch.stop();
    violations.push(...watch.violations);
    return { broke, violations, suspicious, figures: numbers.figures(watch.checked()) };
  }

  /** One reading against the log and the undisturbed run. */
  async judge(reading: Reading): Promise<{ found: StreamViolation[]; stored: StoredStream }> {
    const { ask, id } = reading;
    const stored: StoredStream = id === undefined ? { log: [], takenAt: undefined } : await readStored(this.redis, id);
    const reference = this.reference.get(ask.name);
    const found = [
      ...ends(reading, stored),
      ...clientIsLog(reading, stored.log),
      ...(reference === undefined ? [] : logIsReference(ask.name, stored.log, reference)),
    ];
    return { found, stored };
  }

  /** I1 and I11, once nothing moves any more. */
  async floor(): Promise<StreamViolation[]> {
    const floor = await settledFloor(this.redis, QUIET_MS);
    const left = cleanFloor(floor, new Map()).map(({ what }) => ({ invariant: "I11", stream: "floor", what }) as const);
    const open = floor.openOutcomes.map((key) => ({ invariant: "I1", stream: key, what: "without outcome" }) as const);
    return [...left, ...open];
  }

  async close(): Promise<void> {
    this.redis.disconnect();
    await this.fleet.dispose();
  }
}

async function undisturbed(fleet: Fleet, redis: Redis, asks: readonly StreamAsk[], seed: number) {
  const reference = new Map<string, readonly string[]>();
  await keepRunning({
    asks,
    client: new StreamClient({ urls: () => fleet.urls, random: seededRandom(seed).fork("undisturbed") }),
    running: asks.length,
    manners: allManners,
    name: `undisturbed-${seed}`,
    async onEnd(reading) {
      const { id, ask, outcome } = reading;
      const stored = id === undefined ? undefined : await readStored(redis, id);
      const found = stored === undefined ? [] : [...ends(reading, stored), ...clientIsLog(reading, stored.log)];
      if (stored === undefined || found.length > 0) {
        throw new Error(`${ask.name} failed undisturbed: ${JSON.stringify({ outcome, found })}`);
      }
      reference.set(ask.name, stored.log);
    },
    enough: AbortSignal.abort(),
  });
  return reference;
}
