/**
 * The events of the fleet, for people who look. While somebody reads, the gateway looks at the
 * fleet every two seconds, once for all readers. Each event has an id, so that a reader who comes
 * back misses none of the last thousand. Other gateways number their own.
 */
import { fixedError } from "#shared/errors.js";
import { readReports } from "#shared/queue/admission/read-reports.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { realWorld, type World } from "#shared/world.js";
import { changesBetween, type ChangeName, type FleetLook } from "./changes.js";
import type { FleetDescription } from "./describe.js";
import { orUnavailable } from "./or-unavailable.js";
import { totalsOf } from "./totals.js";
import type { FleetWatch } from "./watch.js";

/** Between two looks, in ms. */
const EVERY_MS = 2_000;
/** Processes note their loads so often, in ms. New loads alone bring a snapshot no more often. */
const LOADS_MS = 5_000;
/** How long the looks go on after the last reader has left, in ms: it may come back. */
const LINGER_MS = 60_000;
const MOST_EVENTS = 1_000;
/** For how long after a change of the members takeovers are read, in ms. */
const TAKEOVERS_MS = 60_000;
const MOST_READERS = 64;

export interface FleetEvent {
  /** A text that only its gateway understands. */
  readonly id: string;
  readonly event: ChangeName | "snapshot";
  /** As JSON: a snapshot has the fleet itself, and another event `at`, in RFC 3339, and facts. */
  readonly data: string;
}

export interface FleetEventsSettings {
  /** The name of this gateway. */
  readonly name: string;
  readonly redis: RedisClient;
  readonly fleet: Pick<FleetWatch, "describe" | "directory" | "hasLeft" | "version">;
  readonly world?: World;
}

interface Numbered extends FleetEvent {
  readonly number: number;
}

export class FleetEvents {
  readonly #settings: FleetEventsSettings;
  readonly #world: World;
  #events: Numbered[] = [];
  #snapshot: Numbered | undefined;
  /** When the snapshot was made, on `World.now()`'s clock. */
  #snapshotAt = -Infinity;
  #number = 0;
  #before: { readonly look: FleetLook; readonly text: string } | undefined;
  #readers = 0;
  #leftAt = 0;
  /** The first look after a pause. */
  #first: Promise<void> | undefined;
  #looking: Promise<void> | undefined;
  /** Requests that were taken over, as the newest read of the reports says. */
  #takeovers: FleetLook["takeovers"] = [];
  /** When the members of the fleet last changed, and the version then. */
  #changed: { readonly version: string | undefined; readonly at: number } | undefined;
  /** Wakes the readers that wait: as many listeners of one signal would make node warn. */
  readonly #waiting = new Set<() => void>();

  constructor(settings: FleetEventsSettings) {
    this.#settings = settings;
    this.#world = settings.world ?? realWorld;
  }

  /**
   * Follows the events: those behind `after` that this gateway still has, the fleet as it is, and
   * then what happens until `signal` aborts.
   * @param after the id of the last event that the reader has; undefined for a new reader
   * @throws InferenceError `unavailable` if there are too many readers, or the gateway cannot ask
   *   Redis
   */
  async open(after: string | undefined): Promise<(signal: AbortSignal) => AsyncIterable<readonly FleetEvent[]>> {
    if (this.#readers >= MOST_READERS) throw fixedError("unavailable", "tooManyFollowers");
    this.#readers++;
    try {
      // The first reader for a while learns nothing of the time before. Others share its look.
      if (this.#looking === undefined) {
        await (this.#first ??= this.#look().finally(() => (this.#first = undefined)));
        this.#looking ??= this.#keepLooking();
      }
    } catch (error) {
      this.#leave();
      throw error;
    }
    return (signal) => this.#follow(this.#numberOf(after), signal);
  }

  #leave(): void {
    this.#readers--;
    this.#leftAt = this.#world.now();
  }

  async *#follow(from: number | undefined, signal: AbortSignal): AsyncIterable<readonly FleetEvent[]> {
    try {
      let at = from ?? this.#number;
      const first = this.#snapshot;
      const missed = this.#events.filter(({ number }) => number > at);
      at = this.#number;
      yield first === undefined ? missed : [...missed, first];
      while (!signal.aborted) {
        const last = at;
        const news = [...this.#events, ...(this.#snapshot === undefined ? [] : [this.#snapshot])];
        const next = news.filter(({ number }) => number > last).toSorted((a, b) => a.number - b.number);
        at = this.#number;
        if (next.length > 0) yield next;
        else await this.#nextLook(signal);
      }
    } finally {
      this.#leave();
    }
  }

  async #keepLooking(): Promise<void> {
    const never = new AbortController().signal;
    while (this.#readers > 0 || this.#world.now() - this.#leftAt < LINGER_MS) {
      await delay(EVERY_MS, never, this.#world);
      // While Redis is away there is nothing to tell. The readers stay, and hear of what comes.
      await this.#look().catch(() => undefined);
    }
    this.#looking = undefined;
    this.#before = undefined;
  }

  async #look(): Promise<void> {
    const { fleet: watch } = this.#settings;
    const [fleet] = await Promise.all([watch.describe(""), this.#readTakeovers()]);
    const look: FleetLook = { fleet, takeovers: this.#takeovers, hasLeft: (worker) => watch.hasLeft(worker) };
    const compared = JSON.stringify(withoutLoads(look.fleet));
    const changes = this.#before === undefined ? [] : changesBetween(this.#before.look, look);
    const now = this.#world.now();
    const isNew = compared !== this.#before?.text || now - this.#snapshotAt >= LOADS_MS;
    this.#before = { look, text: compared };
    const at = new Date().toISOString();
    for (const { event, data } of changes) this.#events.push(this.#numbered(event, JSON.stringify({ at, ...data })));
    this.#events = this.#events.slice(-MOST_EVENTS);
    if (isNew) {
      this.#snapshot = this.#numbered("snapshot", JSON.stringify(fleet));
      this.#snapshotAt = now;
    }
    if (changes.length === 0 && !isNew) return;
    for (const wake of this.#waiting) wake();
  }

  /** Reports of a large fleet are long, and a takeover follows only on a change of the members. */
  async #readTakeovers(): Promise<void> {
    const { redis, fleet } = this.#settings;
    const now = this.#world.now();
    if (this.#changed?.version !== fleet.version) this.#changed = { version: fleet.version, at: now };
    if (now - (this.#changed?.at ?? now) > TAKEOVERS_MS) return;
    const { reports, past } = await orUnavailable(redis, () => readReports(redis));
    const totals = totalsOf([...reports, ...past]);
    const versions = fleet.directory
      .all()
      .map(({ name, version }) => [`${name}/${version}`, { name, version }] as const);
    this.#takeovers = [...new Map(versions).values()].map((one) => ({ ...one, count: totals(one).of.takeovers }));
  }

  #numbered(event: FleetEvent["event"], data: string): Numbered {
    const number = ++this.#number;
    return { number, id: `${this.#settings.name}.${number}`, event, data };
  }

  /** @returns undefined if another gateway gave the id, or nobody did */
  #numberOf(id: string | undefined): number | undefined {
    const [, gateway, number] = /^(.*)\.(\d{1,15})$/.exec(id ?? "") ?? [];
    return gateway === this.#settings.name ? Math.min(Number(number), this.#number) : undefined;
  }

  #nextLook(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        this.#waiting.delete(end);
        signal.removeEventListener("abort", end);
        resolve();
      };
      this.#waiting.add(end);
      signal.addEventListener("abort", end);
      if (signal.aborted) end();
    });
  }
}

/** The load of a process changes all the time, and is no news at each look. */
function withoutLoads({ workers, gateways = [], jobs = [], ...fleet }: FleetDescription): object {
  const plain = (processes: readonly object[]) =>
    processes.map((one) => ({ ...one, load: undefined, connections: undefined, beat_age_ms: undefined }));
  return { ...fleet, workers: plain(workers), gateways: plain(gateways), jobs: plain(jobs) };
}
