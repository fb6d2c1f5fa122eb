/**
 * A lab for all tests of streams: real brokers behind lines that a test can cut, gateways and
 * workers as processes, and gateways' relays in this process, as many of each as a test wants.
 *
 * An experiment keeps streams running during faults, and judges each stream: by the log, by the log
 * of an undisturbed run, and by the messages on NATS.
 */
import type { Redis } from "ioredis";
import { connectBus, type Bus } from "#shared/nats/connect.js";
import { settledFloor } from "../sequences/floor.js";
import { cleanFloor } from "../sequences/invariants.js";
import { startFleet, type Fleet, type FleetPlan } from "../fleet/fleet.js";
import type { KeyReader } from "../fleet/store.js";
import { seededRandom } from "../fleet/random.js";
import { silentLog } from "../silent.js";
import { until } from "../until.js";
import { planAsks, type AskPlan, type StreamAsk } from "./ask.js";
import { clientIsLog, ends, logIsReference, type StoredStream, type StreamViolation } from "./check.js";
import { keepRunning, StreamClient } from "./client.js";
import type { Manner, Reading } from "./history.js";
import { StreamNumbers, type StreamFigures } from "./numbers.js";
import { startRelayGateway, type RelayGateway } from "./relay.js";
import { readStored } from "./stored.js";
import { watchSubjects } from "./subject.js";

export interface LabPlan {
  readonly seed: number;
  readonly fleet: FleetPlan;
  /**
   * Different requests, which the lab runs undisturbed when it opens. A load of more streams
   * repeats the requests. If absent, the lab has no load.
   */
  readonly asks?: Omit<AskPlan, "random">;
  /**
   * The tenant of all streams, if gateways read a header for the tenant; if absent, the default
   * tenant.
   */
  readonly tenant?: { readonly name: string; readonly header: string };
}

export interface StreamExperiment<Broke> {
  readonly name: string;
  /** How many streams run at a time. */
  readonly running: number;
  readonly manners?: readonly Manner[];
  /** How many requests the workers must set aside meanwhile. */
  readonly poison?: number;
  readonly breaking: (fleet: Fleet, ended: EndedStreams) => Promise<Broke>;
}

/** The streams of an experiment that have ended so far. */
export interface EndedStreams {
  readonly count: number;
  /** Resolves when `count` streams have ended. */
  reach(count: number): Promise<void>;
}

export interface StreamFindings<Broke> {
  readonly broke: Broke;
  readonly violations: readonly StreamViolation[];
  /** The readings with violations, for a test to save. */
  readonly suspicious: readonly Reading[];
  readonly figures: StreamFigures;
}

/** A lab of brokers alone: the test adds relays, and acts as the worker. */
export const BROKERS_ALONE: LabPlan = { seed: 1, fleet: { gateways: 0, workers: 0, models: [] } };

const QUIET_MS = 15_000;
/**
 * In the second undisturbed run the number of streams at a time is the first run's divided by this.
 */
const FEWER = 8;
/** A single request in this many may have two different undisturbed answers. */
const MOST_UNSETTLED = 20;
const overHttp: readonly Manner[] = ["completions", "events", "generate_stream", "websocket"];

export class StreamLab {
  readonly fleet: Fleet;
  /**
   * A connection past the lines, which waits while Redis is down. In a Cluster it leads to the
   * first node alone.
   */
  readonly redis: Redis;
  readonly #reader: KeyReader;
  readonly #seed: number;
  readonly #relays: RelayGateway[] = [];
  #bus: Bus | undefined;
  #asks: readonly StreamAsk[] = [];
  /** The log of an undisturbed run, by the name of the request. */
  readonly #reference = new Map<string, readonly string[]>();
  #learned = 0;
  #asked = 0;
  readonly #ownsFleet: boolean;
  readonly #tenant: LabPlan["tenant"];

  private constructor(fleet: Fleet, { seed, tenant }: Omit<LabPlan, "fleet">, ownsFleet: boolean) {
    this.fleet = fleet;
    this.#ownsFleet = ownsFleet;
    this.#tenant = tenant;
    this.redis = fleet.redis.connect({ retryStrategy: () => 20 });
    this.#reader = fleet.store.connectReader();
    this.#seed = seed;
  }

  static async open({ fleet, ...plan }: LabPlan): Promise<StreamLab> {
    const lab = new StreamLab(await startFleet(fleet), plan, true);
    try {
      await lab.fleet.whenServing();
      await lab.#plan(plan.asks);
      return lab;
    } catch (error) {
      await lab.close();
      throw error;
    }
  }

  /**
   * Opens a lab on a fleet that serves already, and that outlives the lab. No fault may strike
   * meanwhile.
   */
  static async over(fleet: Fleet, plan: Omit<LabPlan, "fleet">): Promise<StreamLab> {
    const lab = new StreamLab(fleet, plan, false);
    await lab.#plan(plan.asks);
    return lab;
  }

  async #plan(asks: LabPlan["asks"]): Promise<void> {
    if (asks === undefined) return;
    this.#asks = planAsks({ ...asks, random: seededRandom(this.#seed).fork("asks") });
    await this.learn(this.#asks);
  }

  /** All manners that the fleet's gateways offer. */
  get #manners(): readonly Manner[] {
    return this.fleet.gateways.some(({ grpc }) => grpc !== "") ? [...overHttp, "grpc"] : overHttp;
  }

  /** How many streams the lab has asked for so far; each has an outcome in Redis. */
  get asked(): number {
    return this.#asked;
  }

  /** The requests of the load: all requests with a single undisturbed answer. */
  get asks(): readonly StreamAsk[] {
    return this.#asks;
  }

  /** A connection to NATS past the lines, like a worker's. */
  get bus(): Bus {
    return (this.#bus ??= connectBus({ url: this.fleet.nats.url, name: "worker", log: silentLog }));
  }

  /**
   * Starts a gateway's relay in this process.
   * @param graceMs how long a stream without readers stays wanted
   */
  async addRelay(graceMs = 30_000): Promise<RelayGateway> {
    const relay = await startRelayGateway(this.fleet, graceMs);
    this.#relays.push(relay);
    await until(() => this.bus.isUp());
    return relay;
  }

  /** How many calls of scripts Redis has had so far, from all clients. */
  async scriptCalls(): Promise<number> {
    const info = await this.redis.info("commandstats");
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(info)?.[1] ?? 0);
  }

  /**
   * Runs these requests undisturbed: first all at a time, then a few at a time. Later readings of
   * these requests must have the same logs. Rounding differs between batches. About once in a
   * million draws, the number drawn is so close to the limit between two tokens that rounding
   * decides. A request whose two answers differ has no undisturbed answer, and leaves the load.
   */
  async learn(asks: readonly StreamAsk[]): Promise<void> {
    const many = await this.#undisturbed(asks, asks.length);
    const few = await this.#undisturbed(asks, Math.ceil(asks.length / FEWER));
    const unsettled = new Set(asks.filter(({ name }) => many.get(name)?.join() !== few.get(name)?.join()));
    for (const { name } of unsettled) {
      const at = many.get(name)?.findIndex((record, i) => record !== few.get(name)?.[i]);
      console.log(`${name}, seed ${this.#seed}: two undisturbed answers differ from record ${at} on; it is not asked`);
    }
    if (unsettled.size > asks.length / MOST_UNSETTLED) throw new Error(`${unsettled.size} asks have two answers each`);
    for (const [name, log] of many) this.#reference.set(name, log);
    this.#asks = this.#asks.filter((ask) => !unsettled.has(ask));
  }

  /** @returns logs by the names of the requests */
  async #undisturbed(asks: readonly StreamAsk[], running: number): Promise<Map<string, readonly string[]>> {
    const logs = new Map<string, readonly string[]>();
    await keepRunning({
      asks,
      client: this.client("undisturbed"),
      running,
      manners: this.#manners,
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
    const headers = this.#tenant === undefined ? {} : { [this.#tenant.header]: this.#tenant.name };
    const targets = () => this.fleet.gateways.map(({ grpc }) => grpc);
    const settings = { urls: () => this.fleet.urls, targets, random: seededRandom(this.#seed).fork(name), headers };
    return new StreamClient(onPiece === undefined ? settings : { ...settings, onPiece });
  }

  async experiment<Broke>(plan: StreamExperiment<Broke>): Promise<StreamFindings<Broke>> {
    const findings = await this.underLoad(plan);
    return { ...findings, violations: [...findings.violations, ...(await this.leftOver(plan.poison))] };
  }

  /** An experiment whose caller checks itself for keys left over. */
  async underLoad<Broke>(plan: Omit<StreamExperiment<Broke>, "poison">): Promise<StreamFindings<Broke>> {
    const { name, running, manners = this.#manners, breaking } = plan;
    const { fleet, asks } = this;
    const watch = await watchSubjects(fleet.nats.url, this.#reader);
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
    await watch.stop();
    violations.push(...watch.violations);
    return { broke, violations, suspicious, figures: numbers.figures(watch.checked()) };
  }

  /** Compares a reading with the log, and the log with the undisturbed run. */
  async judge(reading: Reading): Promise<{ found: StreamViolation[]; stored: StoredStream }> {
    this.#asked++;
    const { ask, id } = reading;
    const stored: StoredStream =
      id === undefined ? { log: [], takenAt: undefined } : await readStored(this.#reader, id, this.#tenant?.name);
    const reference = this.#reference.get(ask.name);
    const found = [
      ...ends(reading, stored),
      ...clientIsLog(reading, stored.log),
      ...(reference === undefined ? [] : logIsReference(ask.name, stored.log, reference)),
    ];
    return { found, stored };
  }

  /**
   * Finds keys in Redis that should not be there at rest.
   * @param poison how many requests the workers must have set aside by now, in all
   */
  async leftOver(poison = 0): Promise<StreamViolation[]> {
    const floor = await settledFloor([this.redis], QUIET_MS);
    const left = cleanFloor({ ...floor, dead: [] }, new Map()).map(({ what }) => what);
    if (floor.dead.length !== poison) left.push(`${floor.dead.length} requests set aside, ${poison} planted`);
    const open = floor.openOutcomes.map(
      (key) => ({ invariant: "every stream ends", stream: key, what: "without outcome" }) as const,
    );
    return [...left.map((what) => ({ invariant: "nothing left over", stream: "floor", what }) as const), ...open];
  }

  async close(): Promise<void> {
    for (const relay of this.#relays) await relay.stop();
    await this.#bus?.close();
    this.redis.disconnect();
    this.#reader.disconnect();
    if (this.#ownsFleet) await this.fleet.dispose();
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
