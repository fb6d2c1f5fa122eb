/**
 * Finds the state that a step continues. Recent states stay in this worker's memory, keyed by the checkpoint they are: a hit costs nothing, and a
 * state that another worker has since moved on can never match.
 */
import { InferenceError } from "#shared/errors.js";
import { FAILED, type Delivery } from "#shared/contract/entry.js";
import type { Tensor } from "#shared/frame.js";
import { sequenceKeys } from "#shared/keys.js";
import { retrying } from "#shared/retry.js";
import { dropIfSilent } from "#shared/redis/connect.js";
import type { LaneQueue } from "../queue/lane.js";
import { decodeCheckpoint, stateLost, type Checkpoint } from "./checkpoint.js";

export type StateLookup =
  /** Undefined: begin with the initial state. */
  | { readonly kind: "found"; readonly tensors: readonly Tensor[] | undefined }
  /** The step ends with this error and the sequence with it. */
  | { readonly kind: "refused"; readonly error: InferenceError }
  /** Redis could not be asked in time; the step stays whoever's it will be. */
  | { readonly kind: "unavailable" };

interface Cached {
  readonly version: string;
  readonly checkpoint: Checkpoint;
  readonly stands: Promise<boolean>;
}

/** How long a lookup outlives a Redis outage; by then the lease is gone too. */
const LOAD_BUDGET_MS = 5_000;

export class States {
  /** Sequence name → newest state seen here, least recently used first. */
  readonly #cache = new Map<string, Cached>();
  #cachedBytes = 0;
  readonly #queue: LaneQueue;
  readonly #maxBytes: number;
  readonly #refuse: (delivery: Delivery) => InferenceError;

  /** @param refuse makes the error for a step of a failed sequence. */
  constructor(queue: LaneQueue, maxBytes: number, refuse: (delivery: Delivery) => InferenceError) {
    this.#queue = queue;
    this.#maxBytes = maxBytes;
    this.#refuse = refuse;
  }

  /** One lookup per delivery, in order; misses share one MGET. */
  find(deliveries: readonly Delivery[]): Promise<StateLookup>[] {
    const misses: string[] = [];
    const lookups = deliveries.map((delivery) => {
      const { sequence, start, from } = delivery;
      if (sequence === undefined || start) return found(undefined);
      if (from === FAILED) return refused(this.#refuse(delivery));
      if (from === "") return found(undefined);
      const key = sequenceKeys(this.#queue.lane, sequence).state;
      const cached = this.#cache.get(sequence);
      if (cached?.version === from) return { cached, key };
      const position = misses.push(key) - 1;
      return { from, position };
    });
    const loaded = misses.length === 0 ? undefined : this.#load(misses);
    return lookups.map(async (lookup): Promise<StateLookup> => {
      if ("kind" in lookup) return lookup;
      if (lookup.cached === undefined) {
        const frames = await loaded;
        return frames === undefined ? { kind: "unavailable" } : read(frames[lookup.position], lookup.from);
      }
      const { version, checkpoint, stands } = lookup.cached;
      if (await stands) return found(checkpoint.tensors);
      const frames = await this.#load([lookup.key]);
      return frames === undefined ? { kind: "unavailable" } : read(frames[0], version);
    });
  }

  /**
   * @param version entry id of the step that made this state.
   * @param stands whether this very state was committed: a step that was taken over has another worker's state under the same version.
   */
  remember(sequence: string, version: string, checkpoint: Checkpoint, stands: Promise<boolean>): void {
    this.#forget(sequence);
    this.#cache.set(sequence, { version, checkpoint, stands });
    this.#cachedBytes += checkpoint.frame.length;
    for (const oldest of this.#cache.keys()) {
      if (this.#cachedBytes <= this.#maxBytes) break;
      this.#forget(oldest);
    }
  }

  #forget(sequence: string): void {
    const cached = this.#cache.get(sequence);
    if (cached === undefined) return;
    this.#cache.delete(sequence);
    this.#cachedBytes -= cached.checkpoint.frame.length;
  }

  async #load(keys: readonly string[]): Promise<(Buffer | null)[] | undefined> {
    const { redis } = this.#queue;
    const load = async () => {
      try {
        return await redis.mgetBuffer(...keys);
      } catch (error) {
        dropIfSilent(redis, error);
        throw error;
      }
    };
    try {
      return await retrying(load, { budgetMs: LOAD_BUDGET_MS });
    } catch {
      return undefined; // the connection's own watcher has logged why
    }
  }
}

function found(tensors: readonly Tensor[] | undefined): StateLookup {
  return { kind: "found", tensors };
}

function refused(error: InferenceError): StateLookup {
  return { kind: "refused", error };
}

function read(frame: Buffer | null | undefined, from: string): StateLookup {
  try {
    if (frame === null || frame === undefined) throw stateLost();
    return found(decodeCheckpoint(frame, from).tensors);
  } catch (error) {
    if (error instanceof InferenceError) return refused(error);
    throw error;
  }
}
