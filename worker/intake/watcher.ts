/** Looks for workers that have died, and ends their leases: what they held can go on at once. */
import type { Logger } from "pino";
import type { Connections } from "#shared/redis/connections.js";
import { abandon } from "../queue/abandon.js";
import type { LaneQueue } from "../queue/lane.js";
import { overdue } from "../queue/overdue.js";
import { APART_MS, judge, mayJudge, type Missing } from "./absence.js";

export interface WatcherSettings {
  readonly queue: LaneQueue;
  readonly connections: Pick<Connections, "names" | "upFor">;
  readonly leaseMs: number;
  readonly log: Logger;
}

/** How often the living look, in ms, a fifth more or less. */
const LOOK_EVERY_MS = 75;
/** Two looks and a bit are late. */
const SILENT_MS = 170;
/** Workers of a lane that ask at a scan, on average: in a large fleet not all of them need to. */
const ASKING = 4;

export class Watcher {
  readonly #settings: WatcherSettings;
  #missing: Missing = new Map();
  /** Workers of the lane, this one included. */
  #workers = 1;

  constructor(settings: WatcherSettings) {
    this.#settings = settings;
  }

  /** How long to wait for the next look, in ms: no longer than needed when it decides about somebody. */
  pause(): number {
    return this.#missing.size > 0 ? APART_MS : LOOK_EVERY_MS * (0.8 + Math.random() * 0.4);
  }

  /** One look, which also tells that this worker lives. Redis is asked who is connected only while somebody is silent. */
  async look(): Promise<void> {
    const { queue, connections, leaseMs, log } = this.#settings;
    const curious = this.#missing.size > 0 || Math.random() < ASKING / this.#workers;
    const ask = curious && mayJudge(connections.upFor(performance.now()));
    const { workers, silent } = await overdue(queue, ask, { silentMs: SILENT_MS, leaseMs });
    if (ask) this.#workers = workers;
    const connected = silent.length === 0 ? undefined : await connections.names();
    const at = performance.now();
    const look = { at, self: queue.consumer, silent, connected, upForMs: connections.upFor(at) };
    const { dead, missing } = judge(this.#missing, look);
    this.#missing = missing;
    for (const worker of dead) {
      const steps = await abandon({ ...queue, consumer: worker }, SILENT_MS);
      if (steps > 0) log.info({ worker, steps }, "a worker is gone; its steps are free");
    }
  }
}
