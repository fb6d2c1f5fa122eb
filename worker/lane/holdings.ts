/**
 * The steps of one model that this worker owns right now, from all lanes. A step leaves the
 * holdings after a commit, after a release, or after a takeover by another worker. A step that this
 * worker gives up in any other way may still be this worker's in Redis. So the holdings remember
 * the step, and the worker takes it back if the worker still owns the entry.
 */
import { createHash } from "node:crypto";
import { isJob } from "#shared/contract/job-meta.js";
import { waitOf } from "#shared/contract/wait.js";
import type { InferenceError } from "#shared/errors.js";
import { decodeFrame, type Frame, type Tensor } from "#shared/frame.js";
import type { Delivery } from "#shared/queue/entry.js";
import type { Taken } from "#shared/queue/work/stream.js";
import { Signal } from "#shared/signal.js";
import { realWorld } from "#shared/world.js";
import type { StateLookup } from "../sequence/states.js";
import type { RunTimes } from "./counts.js";

/**
 * A step that this worker owns, with its request parsed. Times are on `performance.now()`'s clock.
 */
export interface Held {
  readonly delivery: Delivery;
  readonly request: Frame;
  /** The time at which this worker received the step. */
  readonly arrivedAt: number;
  /** The time at which Redis admitted the request. From an older gateway: the time of arrival. */
  readonly admittedAt: number;
  /** The step must not begin to run after this time. */
  readonly expiresAt: number;
  /** Size of the request's own batch dimension; 1 if the model has no batch dimension. */
  readonly rows: number;
  /**
   * Names and shapes of the inputs, and the contents of inputs that a batch shares. Requests with
   * equal keys may share a batch.
   */
  readonly shapeKey: string;
  /** Name of the step's sequence; undefined for a stateless request. */
  readonly sequence: string | undefined;
  /** Whether the request runs a job. */
  readonly job: boolean;
  /** The lookup begins when the step arrives, so that a batch need not wait for Redis. */
  readonly state: Promise<StateLookup>;
  readonly before: RunsBefore;
  /** The ensemble that calls the model; undefined for a request of one of the model's lanes. */
  readonly call?: StepCall | undefined;
}

/**
 * A step of an ensemble, as the model that runs it sees the ensemble (`worker/ensembles/`). Such a
 * request shares batches with the requests of the model's lanes, and its end goes to the ensemble.
 */
export interface StepCall {
  /** Whether nobody needs the step's result any more. The model does not run it again then. */
  isOver(): boolean;
  /**
   * Takes an answer of a decoupled model that is to run again.
   * @returns resolves when the model may run again
   */
  answered(outputs: readonly Tensor[]): Promise<void>;
  ended(end: StepEnd): void;
}

export type StepEnd = StepResult | { readonly kind: "error"; readonly error: InferenceError };

export interface StepResult {
  readonly kind: "result";
  /** Undefined if a decoupled model gives no answer at its end. */
  readonly outputs: readonly Tensor[] | undefined;
  /** The states that the step leaves, under the names of their inputs. */
  readonly states: readonly Tensor[];
  /** The times of the model's runs. */
  readonly run: RunTimes;
  /** The request's share of the model's time, in ms. */
  readonly shareMs: number;
}

/** The runs that a request has behind it, if its model runs again and again for one request. */
export interface RunsBefore {
  readonly runs: number;
  /** How many answers have come of them, and their bytes. */
  readonly answers: number;
  readonly bytes: number;
  /** The request's share of the model's time, and the whole time of its batches, in ms. */
  readonly shareMs: number;
  readonly ranMs: number;
  /** When the first run at this worker began; undefined before. */
  readonly begunAt: number | undefined;
}

export const noRuns: RunsBefore = { runs: 0, answers: 0, bytes: 0, shareMs: 0, ranMs: 0, begunAt: undefined };

/** How a model's requests share batches. */
export interface Batching {
  /** Whether the first axis of the model's inputs counts rows. */
  readonly batched: boolean;
  /**
   * Inputs without that axis. A batch has each such input once, so its requests must agree on it.
   */
  readonly shared: ReadonlySet<string>;
  /** Inputs whose shapes may differ within a batch; absent if there are none. */
  readonly ragged?: ReadonlySet<string> | undefined;
}

/** For a model without a batch dimension. */
export const unbatched: Batching = { batched: false, shared: new Set() };

/** A fresh step is new. A suspect was delivered earlier, and a run may have ended its worker. */
export type Arrival = "fresh" | "suspect";

/** The state of a held step: waiting as it arrived, or running, commit included. */
type Stage = Arrival | "running";

/** A worker that is gone. */
export interface GoneWorker {
  readonly worker: string;
  /** The last sign of life, on `performance.now()`'s clock. */
  readonly seenAt: number;
  /** By entry: to how many workers Redis has given it, the present worker included. */
  readonly times: ReadonlyMap<string, number>;
}

/** Says how many steps to take from Redis, and takes them in. */
export interface Intake {
  /** How many more new steps the reader may read now. */
  room(): number;
  /** How many more suspects this worker may take over now. Other workers take the rest. */
  suspectRoom(): number;
  /** @param from another worker that had the steps before; absent if there is none */
  accept(taken: Taken, arrival: Arrival, from?: GoneWorker): void;
  /**
   * To be called after a lost reply, because Redis may have given this worker entries without its
   * knowledge. No other worker takes entries from a living worker.
   */
  doubt(): void;
}

/** The part of a step that the holdings remember after the worker has given the step up. */
export type Left = Pick<Delivery, "key" | "lane" | "entry">;

/** Hears of changes in the holdings. */
export interface HoldingsListener {
  /** @param jobs how many of the steps run jobs now */
  holds(jobs: number): void;
  /** A step has left the holdings, for whatever reason. */
  gone(delivery: Delivery): void;
}

const nobody: HoldingsListener = { holds: () => undefined, gone: () => undefined };

export class Holdings {
  /** Gets a notification when there may be something new to plan. */
  readonly arrived: Signal;
  /** Gets a notification when there may be room for more. */
  readonly taken: { notify(): void };
  /** By the key of the delivery, oldest first. */
  readonly #steps = new Map<string, { readonly held: Held; stage: Stage }>();
  /** Steps that the worker gave up, by key, each with its time on `performance.now()`'s clock. */
  readonly #left = new Map<string, { readonly located: Left; readonly at: number }>();

  /** How many of the steps run jobs. */
  #jobs = 0;
  readonly #listener: HoldingsListener;

  constructor(taken: { notify(): void } = new Signal(), world = realWorld, listener = nobody) {
    this.arrived = new Signal(world);
    this.taken = taken;
    this.#listener = listener;
  }

  /** Fresh steps that have not begun, oldest first. */
  get waiting(): readonly Held[] {
    return this.#at("fresh");
  }

  /** Suspects that have not begun, oldest first. */
  get suspects(): readonly Held[] {
    return this.#at("suspect");
  }

  /** The steps that have not begun. */
  unbegun(): Delivery[] {
    return [...this.waiting, ...this.suspects].map(({ delivery }) => delivery);
  }

  /** The number of steps, running steps included. */
  get size(): number {
    return this.#steps.size;
  }

  /** The keys of all steps, running steps included. */
  keys(): string[] {
    return [...this.#steps.keys()];
  }

  /** @param key of a delivery, here and below */
  has(key: string): boolean {
    return this.#steps.has(key);
  }

  hold(arrived: readonly Held[], arrival: Arrival): void {
    for (const held of arrived) {
      this.#remove(held.delivery.key);
      this.#steps.set(held.delivery.key, { held, stage: arrival });
      this.#left.delete(held.delivery.key);
      if (held.job) this.#listener.holds(++this.#jobs);
    }
    if (arrived.length > 0) this.arrived.notify();
  }

  /** Moves steps from waiting to running. */
  take(batch: readonly Held[]): void {
    for (const step of this.#among(batch)) step.stage = "running";
    this.taken.notify();
  }

  /** Lets a step wait for its next run, unless this worker has lost it. */
  again(held: Held): void {
    const step = this.#steps.get(held.delivery.key);
    if (step?.stage === "running") this.#steps.set(held.delivery.key, { held, stage: "fresh" });
  }

  /** Lets steps wait again that were taken and have not begun to run. */
  putBack(batch: readonly Held[]): void {
    for (const step of this.#among(batch)) if (step.stage === "running") step.stage = "fresh";
  }

  /**
   * The steps of a batch, without the calls of ensembles. A call has the key of an entry in another
   * model's lane, and an entry of a lane here may have the same id.
   */
  #among(batch: readonly Held[]): { stage: Stage }[] {
    return batch.flatMap(({ call, delivery }) => (call === undefined ? (this.#steps.get(delivery.key) ?? []) : []));
  }

  /**
   * Forgets steps after a commit, a release or a loss. A running step finishes in vain, because
   * Redis refuses its commit.
   */
  drop(keys: Iterable<string>): void {
    for (const key of keys) {
      this.#remove(key);
      this.#left.delete(key);
    }
    this.taken.notify();
  }

  /**
   * Gives up steps that this worker may still own: the connection was cut, a state was unreadable,
   * or a commit failed. No other worker takes steps from a living worker.
   * @param now on `performance.now()`'s clock
   */
  leave(steps: Iterable<Left>, now: number): void {
    for (const { key, lane, entry } of steps) {
      this.#remove(key);
      this.#left.set(key, { located: { key, lane, entry }, at: now });
    }
    this.taken.notify();
  }

  /** The steps that the worker gave up at this time or earlier, in that order. */
  leftBy(time: number): Left[] {
    return [...this.#left.values()].filter(({ at }) => at <= time).map(({ located }) => located);
  }

  /** The number of steps that wait as they arrived, wait as suspects, or run. */
  countAt(stage: "waiting" | "suspect" | "running"): number {
    const wanted: Stage = stage === "waiting" ? "fresh" : stage;
    let count = 0;
    for (const step of this.#steps.values()) if (step.stage === wanted) count++;
    return count;
  }

  #remove(key: string): void {
    const held = this.#steps.get(key)?.held;
    if (held === undefined) return;
    this.#steps.delete(key);
    if (held.job) this.#listener.holds(--this.#jobs);
    this.#listener.gone(held.delivery);
  }

  #at(stage: Stage): Held[] {
    const found: Held[] = [];
    for (const step of this.#steps.values()) if (step.stage === stage) found.push(step.held);
    return found;
  }
}

/**
 * Parses a delivery's request, once, at its arrival.
 *
 * @param expiresAt the time after which the step must not begin, on `performance.now()`'s clock
 * @throws Error for a frame that no gateway of this version has written
 */
export function hold(
  delivery: Delivery,
  expiresAt: number,
  batching: Batching,
  state: Promise<StateLookup>,
  world = realWorld,
): Held {
  const request = decodeFrame(delivery.frame);
  const { batched, shared } = batching;
  const rowed = batched ? request.tensors.find(({ name }) => !shared.has(name)) : undefined;
  const arrivedAt = world.now();
  const waitMs = waitOf(request.meta);
  return {
    delivery,
    request,
    state,
    rows: rowed?.shape[0] ?? 1,
    shapeKey: shapeKeyOf(request.tensors, batching),
    sequence: delivery.sequence,
    job: isJob(request.meta),
    arrivedAt,
    admittedAt: waitMs === undefined ? arrivedAt : expiresAt - waitMs,
    expiresAt,
    before: noRuns,
  };
}

/** Equal for requests that may share a batch. @param inputs of a request */
export function shapeKeyOf(inputs: readonly Tensor[], { batched, shared, ragged }: Batching): string {
  const shapes = inputs.map(({ name, shape, data }) => {
    if (ragged?.has(name) === true) return name;
    if (shared.has(name)) return `${name}[${shape.join(",")}]=${fingerprint(data)}`;
    return `${name}[${(batched ? shape.slice(1) : shape).join(",")}]`;
  });
  return shapes.join(";");
}

/** Equal for equal bytes only. */
function fingerprint(data: Buffer): string {
  return data.length <= 64 ? data.toString("base64") : createHash("sha256").update(data).digest("base64");
}
