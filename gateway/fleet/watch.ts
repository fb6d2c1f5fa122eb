/**
 * The present fleet: workers and their models, and whether Redis takes requests at all. Four times
 * a second the gateway asks Redis for the fleet's version, with one plain command. Only a new
 * version makes the gateway read the fleet again, because with many workers and many gateways more
 * would cost too much. At least once a second the gateway also asks which workers are late, and
 * whether Redis takes writes; four times a second while something is amiss.
 */
import type { Logger } from "pino";
import type { Pin } from "#shared/queue/address.js";
import { announcement, hasStreams, type Announcement, type ServedModel } from "#shared/contract/announcement.js";
import { InferenceError } from "#shared/errors.js";
import { readFleet, readVersion, type FleetState } from "#shared/queue/admission/read-fleet.js";
import type { QueueLimits } from "#shared/queue/admission/limits.js";
import { REMEMBERED_MS } from "#shared/queue/keys.js";
import { readAnnouncements, readMembers, type Members } from "#shared/queue/members.js";
import type { LoadSum } from "#shared/queue/pieces/load.js";
import { readRefusals, type Refusal } from "#shared/queue/refusals.js";
import type { TraceFields } from "#shared/queue/trace-settings.js";
import { cells } from "#shared/metrics/cells.js";
import { dropIfSilent, type RedisClient } from "#shared/redis/connect.js";
import { delay, within } from "#shared/retry.js";
import { realWorld, type World } from "#shared/world.js";
import { BucketWatch, PATIENCE_MS, type Unserved } from "./buckets.js";
import {
  describeFleet,
  loadOfTenant,
  scrapeTargets,
  type AskedLoad,
  type FleetDescription,
  type ScrapeTarget,
} from "./describe.js";
import type { FleetControl } from "./control.js";
import type { GoneBack } from "./gone-back.js";
import { historyOf, type FleetHistory } from "./history.js";
import { directoryOf, type ModelDirectory } from "./models.js";

const EVERY_MS = 250;
/**
 * Of this many looks in a calm fleet, all but one ask for the version alone. With the pauses
 * between them and their round trips they take less than the second within which readiness follows.
 */
const WHOLE_EVERY = 3;
/** Pause between tries until the first look has reached Redis, in ms. */
const FIRST_LOOK_PAUSE_MS = 50;
/**
 * A worker that is not yet declared dead counts as live until it has been late at all looks of this
 * time, in ms. While Redis is away no worker can reach it, and after a restart Redis knows old
 * beats only.
 */
const LATE_MS = 1_000;

/** The part of the fleet that HTTP paths see. */
export interface Fleet {
  /** The models of live workers, and of workers that have gone lately: requests for these queue. */
  readonly directory: ModelDirectory;
  /**
   * Gives the answer of `GET /v2/fleet`.
   * @param tenant the tenant that asks; empty for a caller without a tenant
   * @throws InferenceError `unavailable` while the gateway cannot ask Redis
   */
  describe(tenant: string): Promise<unknown>;
  /**
   * Gives the answer of `GET /v2/fleet/targets`.
   * @throws InferenceError `unavailable` while the gateway cannot ask Redis
   */
  targets(): Promise<readonly ScrapeTarget[]>;
  /**
   * Counts the requests of a tenant that wait or run.
   * @throws InferenceError `unavailable` while the gateway cannot ask Redis
   */
  loadOf(tenant: string): Promise<LoadSum>;
  /**
   * Gives the answer of `GET /v2/fleet/history`.
   * @param models undefined for all
   * @throws InferenceError `unavailable` while the gateway cannot ask Redis
   */
  history(minutes: number, models: readonly string[] | undefined): Promise<FleetHistory>;
}

export interface FleetSettings {
  readonly redis: RedisClient;
  /** How many lanes each model version has. */
  readonly buckets: number;
  readonly log: Logger;
  /** Called when a worker stops counting as live: it is gone, or cut off. */
  readonly onGone?: () => void;
  /** For `GET /v2/fleet`: losses of data that Redis had acknowledged. */
  readonly goneBack?: GoneBack;
  /** For `GET /v2/fleet`: the limits of the queue. */
  readonly limits?: QueueLimits;
  /** Called at each look with the settings of traces that operators have changed. */
  readonly onTracing?: ((fields: TraceFields) => void) | undefined;
  /** Called at each look with the log's verbosity; undefined if operators have not changed it. */
  readonly onVerbosity?: (verbosity: number | undefined) => void;
  readonly world?: World;
}

/** A view of the fleet that keeps itself current until its signal aborts. */
export class FleetWatch implements Fleet {
  readonly #settings: FleetSettings;
  /** An announcement never changes within a worker's boot, so the watch fetches each once. */
  #known: ReadonlyMap<string, Announcement> = new Map<string, Announcement>();
  /** The members of the fleet, as of the last version read; undefined before the first look. */
  #members: (Members & { readonly version: string }) | undefined;
  /** Since when each late worker has been late at every look, on `performance.now()`'s clock. */
  #lateSince: ReadonlyMap<string, number> = new Map<string, number>();
  /** Live workers as of the last look. */
  #workers: readonly Announcement[] = [];
  /** Workers that have gone lately: their models are still known, and requests for these queue. */
  #lapsed: readonly Announcement[] = [];
  /** Why workers go on with the models that they have, as of the last version read. */
  #refusals: ReadonlyMap<string, Refusal> = new Map<string, Refusal>();
  /** Made from the lists and the refusals, and made again only when one of them changes. */
  #directory: ModelDirectory = directoryOf([]);
  #control: FleetControl = { workers: [], lapsed: [], refusals: new Map() };
  /** Whether the last look has reached the server that has the registry. */
  #reachable = false;
  /** How many looks have asked for the version alone since the last whole look. */
  #brief = 0;
  /** Whether the last whole look found Redis there and taking writes, and no worker late. */
  #isCalm = false;
  readonly #buckets: BucketWatch;
  readonly #world: World;

  private constructor(settings: FleetSettings) {
    this.#settings = settings;
    this.#world = settings.world ?? realWorld;
    this.#buckets = new BucketWatch(settings.redis, settings.buckets, settings.log, this.#world);
  }

  /**
   * Resolves after the first look that reached Redis, because a gateway that knows no fleet yet
   * would call every model unknown. Then continues to look until `signal` aborts.
   */
  static async start(settings: FleetSettings, signal: AbortSignal): Promise<FleetWatch> {
    const watch = new FleetWatch(settings);
    while (!watch.#reachable && !signal.aborted) {
      await watch.#look();
      if (!watch.#reachable) await delay(FIRST_LOOK_PAUSE_MS, signal, watch.#world);
    }
    watch.#keepLooking(signal).catch((error: unknown) => {
      settings.log.error({ error: String(error) }, "fleet watch ended");
    });
    return watch;
  }

  get directory(): ModelDirectory {
    return this.#directory;
  }

  /** The workers that load and unload models at a client's wish. */
  get control(): FleetControl {
    return this.#control;
  }

  /** @returns undefined if no worker has served this pin lately */
  pinned(model: string, pin: Pin): ServedModel | undefined {
    return this.#directory.pinned(model, pin);
  }

  /** @returns undefined if no served version takes the states of this pin */
  heir(model: string, pin: Pin): ServedModel | undefined {
    return this.#directory.heir(model, pin);
  }

  /** How many requests all workers of a model hold at once; undefined if one does not say. */
  takenAtOnce(model: ServedModel): number | undefined {
    return this.#directory.takenAtOnce(model);
  }

  /** The live workers. */
  get workers(): readonly Announcement[] {
    return this.#workers;
  }

  /** Workers that have gone lately. */
  get lapsed(): readonly Announcement[] {
    return this.#lapsed;
  }

  get unserved(): readonly Unserved[] {
    return this.#buckets.unserved;
  }

  /** Changes with each change of the members; undefined before the first look. */
  get version(): string | undefined {
    return this.#members?.version;
  }

  /** Whether a worker that is gone has left by itself. */
  hasLeft(worker: string): boolean {
    return this.#members?.left.has(worker) === true;
  }

  history(minutes: number, models: readonly string[] | undefined): Promise<FleetHistory> {
    return historyOf(this.#settings.redis, minutes, models);
  }

  workerOf(boot: string): string | undefined {
    return this.#workers.find(({ worker }) => worker.endsWith(`.${boot}`))?.worker;
  }

  describe(tenant: string): Promise<FleetDescription> {
    const { goneBack, limits } = this.#settings;
    return describeFleet({ ...this.#described(tenant), workers: this.#workers, goneBack, limits });
  }

  targets(): Promise<readonly ScrapeTarget[]> {
    return scrapeTargets(this.#described(""), this.#workers);
  }

  loadOf(tenant: string): Promise<LoadSum> {
    return loadOfTenant(this.#described(tenant));
  }

  #described(tenant: string): AskedLoad {
    const { redis, buckets } = this.#settings;
    return { redis, buckets, unserved: this.#buckets.unserved, tenant };
  }

  /**
   * False while the gateway cannot ask Redis, or Redis refuses writes: then Redis admits nothing.
   * In a Cluster true while some master takes requests: while a master is being replaced, all
   * gateways are without that master, and continue with the fleet that they know. `describe` and
   * the log say which buckets have no server.
   */
  get canAdmit(): boolean {
    const knowsFleet = this.#settings.redis.isCluster ? this.#members !== undefined : this.#reachable;
    return knowsFleet && this.#buckets.servesAny;
  }

  /**
   * Whether the model's requests are streams.
   * @returns undefined if no worker serves the model any more
   */
  hasStreams(model: string): boolean | undefined {
    try {
      return hasStreams(this.#directory.find(model));
    } catch (error) {
      if (error instanceof InferenceError) return undefined;
      throw error;
    }
  }

  async #keepLooking(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(EVERY_MS, signal, this.#world);
      await this.#look();
    }
  }

  async #look(): Promise<void> {
    if (this.#isCalm && ++this.#brief < WHOLE_EVERY && (await this.#isUnchanged())) return;
    this.#brief = 0;
    await Promise.all([this.#lookAtFleet(), this.#buckets.look()]);
    this.#isCalm = this.#reachable && this.#lateSince.size === 0 && this.#buckets.unserved.length === 0;
  }

  /** If the version does not come in time, a whole look follows, which finds the fault. */
  async #isUnchanged(): Promise<boolean> {
    const { redis } = this.#settings;
    const asked = readVersion(redis);
    try {
      if (await within(PATIENCE_MS, asked, this.#world)) return (await asked) === this.#members?.version;
      asked.catch((error: unknown) => dropIfSilent(redis, error));
    } catch (error) {
      dropIfSilent(redis, error);
    }
    return false;
  }

  async #lookAtFleet(): Promise<void> {
    const { redis } = this.#settings;
    try {
      const state = await readFleet(redis);
      if (state.version !== this.#members?.version) await this.#readMembers(state);
      this.#judge(state);
      this.#settings.onTracing?.(state.tracing);
      this.#settings.onVerbosity?.(state.verbosity);
      this.#reachable = true;
    } catch (error) {
      dropIfSilent(redis, error);
      this.#reachable = false;
    }
  }

  async #readMembers({ redisNow, version }: FleetState): Promise<void> {
    const { redis, log } = this.#settings;
    const members = await readMembers(redis, redisNow);
    const names = [...new Set([...members.living, ...members.gone.keys()])].sort();
    const unknown = names.filter((name) => !this.#known.has(name));
    const [texts, refusals] = await Promise.all([readAnnouncements(redis, unknown), readRefusals(redis)]);
    const fetched = new Map(unknown.map((name, i) => [name, parse(name, texts[i], log)]));
    this.#known = new Map(
      names.flatMap((name) => {
        const one = this.#known.get(name) ?? fetched.get(name);
        return one === undefined ? [] : [[name, one] as const];
      }),
    );
    this.#refusals = refusals;
    // A change during these reads has a newer version, which the next look finds.
    this.#members = { ...members, version };
  }

  /** Tells the live workers from workers that have gone lately, and forgets all others. */
  #judge({ redisNow, late }: FleetState): void {
    const now = this.#world.now();
    this.#lateSince = new Map([...late.keys()].map((name) => [name, this.#lateSince.get(name) ?? now]));
    const live: Announcement[] = [];
    const lapsed: Announcement[] = [];
    for (const [name, one] of this.#known) {
      const isLate = now - (this.#lateSince.get(name) ?? now) >= LATE_MS;
      const goneAt = this.#members?.gone.get(name) ?? (isLate ? late.get(name) : undefined);
      if (goneAt === undefined) live.push(one);
      else if (redisNow - goneAt < REMEMBERED_MS) lapsed.push(one);
    }
    const { refusals } = this.#control;
    if (areSame(this.#workers, live) && areSame(this.#lapsed, lapsed) && refusals === this.#refusals) return;
    noteSeries([...this.#workers, ...this.#lapsed], [...live, ...lapsed]);
    const left = new Set(live);
    const hasGone = this.#workers.some((worker) => !left.has(worker));
    this.#workers = live;
    this.#lapsed = lapsed;
    const departed = this.#members?.left ?? new Set<string>();
    // If a worker has gone, the worker whose place it took serves again for as long as it lives.
    const workers = notReplaced(live, live);
    const lately = notReplaced(lapsed, [...live, ...lapsed]);
    const missed = lately.filter(({ worker }) => !departed.has(worker));
    this.#control = { workers, lapsed: lately, refusals: this.#refusals };
    this.#directory = directoryOf(workers, lately, missed, this.#refusals);
    if (hasGone) this.#settings.onGone?.();
  }
}

function notReplaced(workers: readonly Announcement[], by: readonly Announcement[]): readonly Announcement[] {
  const replaced = new Set(by.map(({ replaces }) => replaces));
  return workers.filter(({ worker }) => !replaced.has(worker));
}

/**
 * A version may have metrics from its first worker on, and they leave the page some minutes after
 * its last worker has gone.
 */
function noteSeries(before: readonly Announcement[], now: readonly Announcement[]): void {
  const modelsOf = (workers: readonly Announcement[]) => workers.flatMap(({ models }) => models);
  const known = modelsOf(now);
  const [names, versions] = [new Set(known.map(({ name }) => name)), new Set(known.map(nameOf))];
  for (const model of modelsOf(before)) {
    if (!versions.has(nameOf(model))) cells.forgetModel(model.name, model.version);
    if (!names.has(model.name)) cells.forgetName(model.name);
  }
  for (const { name, version } of known) cells.modelLabels(name, version);
}

function nameOf({ name, version }: ServedModel): string {
  return `${name}/${version}`;
}

/**
 * Whether two lists hold the very same announcements. The watch parses each announcement once, so
 * identity is enough.
 */
function areSame(before: readonly Announcement[], now: readonly Announcement[]): boolean {
  return now.length === before.length && now.every((one, i) => one === before[i]);
}

function parse(worker: string, text: string | null | undefined, log: Logger): Announcement | undefined {
  if (text === null || text === undefined) return undefined;
  try {
    return announcement.parse(JSON.parse(text));
  } catch {
    log.error({ worker }, "unreadable announcement ignored: a worker of another version?");
    return undefined;
  }
}
