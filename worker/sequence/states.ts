/**
 * Finds the state that a step continues. Recent states stay in this worker's memory under the
 * version of their checkpoint, which names the run that made it. So a hit costs nothing. A state
 * that was never committed, or that another worker has since continued, cannot match.
 */
import { decodeCorrelationId, startRequiredMessage } from "#shared/contract/sequence.js";
import { encodedIdOf } from "#shared/queue/address.js";
import { InferenceError } from "#shared/errors.js";
import { FAILED, type Delivery } from "#shared/queue/entry.js";
import type { Tensor } from "#shared/frame.js";
import { versionKey } from "#shared/queue/keys.js";
import { retrying, within } from "#shared/retry.js";
import { realWorld, type World } from "#shared/world.js";
import { dropIfSilent, type RedisClient } from "#shared/redis/connect.js";
import { isPointer, type SleepingStates } from "#shared/sleeping-states.js";
import { callGroups } from "#shared/redis/slots.js";
import type { ModelQueue } from "#shared/queue/work/lane.js";
import { decodeCheckpoint, stateLost, type Checkpoint } from "#shared/contract/checkpoint.js";

export type StateLookup =
  /**
   * The state that the step continues; undefined if the step begins with the initial state. The
   * place is undefined for a request without a sequence.
   */
  | { readonly kind: "found"; readonly tensors: readonly Tensor[] | undefined; readonly place?: StatePlace | undefined }
  /** The step ends with this error, and the sequence with it. */
  | { readonly kind: "refused"; readonly error: InferenceError }
  /** Redis did not answer in time. The worker gives the step up, and tries again later. */
  | { readonly kind: "unavailable" };

/** How long a lookup retries while Redis is away, in ms. */
const LOAD_BUDGET_MS = 5_000;
/**
 * The same in a Cluster, in ms: shorter, because steps whose masters answer wait in the same batch.
 */
const CLUSTER_BUDGET_MS = 300;

/** The places of a state that a step continues; a step that begins a sequence has none. */
export const statePlaces = ["start", "memory", "redis", "disk"] as const;
export type StatePlace = (typeof statePlaces)[number];

export interface LookUpCounts {
  lookedUp(from: StatePlace): void;
}

export type Sleeping = Pick<SleepingStates, "read">;

export class States {
  /** The newest state of each sequence, by the sequence's name; least recently written first. */
  readonly #cache = new Map<string, Checkpoint>();
  #cachedBytes = 0;
  readonly #queue: ModelQueue;
  readonly #maxBytes: number;
  readonly #sleeping: Sleeping | undefined;
  readonly #world: World;
  readonly #counts: LookUpCounts | undefined;

  /**
   * @param maxBytes memory for recent states
   * @param sleeping states that lie on disk; undefined if the deployment keeps no states on disk
   */
  constructor(queue: ModelQueue, maxBytes: number, sleeping?: Sleeping, world = realWorld, counts?: LookUpCounts) {
    this.#queue = queue;
    this.#maxBytes = maxBytes;
    this.#sleeping = sleeping;
    this.#world = world;
    this.#counts = counts;
  }

  /** Bytes of the states in memory. */
  get cachedBytes(): number {
    return this.#cachedBytes;
  }

  /**
   * Begins a lookup for each delivery, and returns the lookups in that order. One MGET reads all
   * states that are not in memory.
   */
  lookUp(deliveries: readonly Delivery[]): Promise<StateLookup>[] {
    const misses: string[] = [];
    const lookups = deliveries.map((delivery) => {
      const { sequence, start, from } = delivery;
      if (sequence === undefined) return found(undefined);
      if (start) return this.#found("start");
      if (from === FAILED) return refused(startRequired(this.#queue.model, sequence));
      if (from === "") return this.#found("start");
      const cached = this.#cache.get(sequence);
      if (cached?.version === from) return this.#found("memory", cached.tensors);
      const position = misses.push(versionKey(delivery, sequence, from)) - 1;
      return { from, position };
    });
    const loaded = misses.length === 0 ? undefined : this.#load(misses);
    const end = async (lookup: (typeof lookups)[number]): Promise<StateLookup> => {
      if ("kind" in lookup) return lookup;
      const frames = await loaded;
      if (frames === undefined) return { kind: "unavailable" };
      const stored = frames[lookup.position];
      const sleeps = isPointer(stored);
      const frame = sleeps ? await this.#sleeping?.read(stored) : stored;
      if (frame === undefined) return { kind: "unavailable" };
      const place = sleeps ? "disk" : "redis";
      this.#counts?.lookedUp(place);
      return read(frame, lookup.from, place);
    };
    return lookups.map((lookup) => (this.#queue.redis.isCluster ? inTime(end(lookup), this.#world) : end(lookup)));
  }

  /**
   * Keeps a state in memory, whether or not its commit is done. States written longest ago leave
   * first.
   */
  remember(sequence: string, checkpoint: Checkpoint): void {
    this.#forget(sequence);
    this.#cache.set(sequence, checkpoint);
    this.#cachedBytes += checkpoint.frame.length;
    for (const oldest of this.#cache.keys()) {
      if (this.#cachedBytes <= this.#maxBytes) break;
      this.#forget(oldest);
    }
  }

  #found(place: StatePlace, tensors?: readonly Tensor[]): StateLookup {
    this.#counts?.lookedUp(place);
    return found(tensors, place);
  }

  #forget(sequence: string): void {
    const cached = this.#cache.get(sequence);
    if (cached === undefined) return;
    this.#cache.delete(sequence);
    this.#cachedBytes -= cached.frame.length;
  }

  async #load(keys: readonly string[]): Promise<(Buffer | null)[] | undefined> {
    const { redis } = this.#queue;
    const load = async () => {
      try {
        return await readAll(redis, keys);
      } catch (error) {
        dropIfSilent(redis, error);
        throw error;
      }
    };
    try {
      return await retrying(load, { budgetMs: LOAD_BUDGET_MS, world: this.#world });
    } catch {
      return undefined; // The connection's own listeners have logged the error.
    }
  }
}

/** Reads all keys, in order, with one command for each slot of a Cluster. */
async function readAll(redis: RedisClient, keys: readonly string[]): Promise<(Buffer | null)[]> {
  const found = new Map<string, Buffer | null>();
  await Promise.all(
    callGroups(redis, keys, (key) => key).map(async (some) => {
      const frames = await redis.mgetBuffer(...some);
      for (const [i, key] of some.entries()) found.set(key, frames[i] ?? null);
    }),
  );
  return keys.map((key) => found.get(key) ?? null);
}

/** A batch waits for all of its states, and some of them may lie at a master that is away. */
async function inTime(lookup: Promise<StateLookup>, world: World): Promise<StateLookup> {
  return (await within(CLUSTER_BUDGET_MS, lookup, world)) ? lookup : { kind: "unavailable" };
}

/** The sequence has failed, and only a step with START begins it anew. */
function startRequired(model: string, sequence: string): InferenceError {
  const id = decodeCorrelationId(encodedIdOf(sequence));
  return new InferenceError("sequence_start_required", startRequiredMessage({ name: model }, id));
}

function found(tensors: readonly Tensor[] | undefined, place?: StatePlace): StateLookup {
  return { kind: "found", tensors, place };
}

function refused(error: InferenceError): StateLookup {
  return { kind: "refused", error };
}

function read(frame: Buffer | null, from: string, place: StatePlace): StateLookup {
  try {
    if (frame === null) throw stateLost();
    return found(decodeCheckpoint(frame, from).tensors, place);
  } catch (error) {
    if (error instanceof InferenceError) return refused(error);
    throw error;
  }
}
