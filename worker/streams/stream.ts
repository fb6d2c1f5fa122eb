/** A stream at this worker, from the moment that the loop takes it on until its end here. */
import { generationShare, generationSpec, labelTokens, type GenerationSpec } from "#shared/contract/generation.js";
import type { Held } from "../lane/holdings.js";
import type { NewGeneration } from "../engine/protocol.js";
import type { Sharer } from "../shares/shares.js";
import { StreamFigures } from "./counts.js";
import type { StreamTrace } from "../trace/stream-trace.js";

/**
 * The state of a stream at this worker. Before the first state, the stream lies in the lane's
 * holdings.
 */
export type StreamState =
  /**
   * The worker reads the log and turns the prompt into tokens. The log's length is not known yet.
   */
  | { readonly kind: "preparing" }
  /** Another worker had the stream before. The stream waits for its turn here (takeover.ts). */
  | { readonly kind: "waiting"; readonly generation: NewGeneration }
  /**
   * The stream's last workers ended without a new record of it. The stream waits to run while
   * nothing else does.
   */
  | { readonly kind: "suspected"; readonly generation: NewGeneration }
  /** The engine computes the stream. */
  | Generating
  /** The stream is over here: its end is on the way to Redis, or another worker has the stream. */
  | { readonly kind: "closed" };

/** The only state that changes in place, because it changes once per record, on the hot path. */
interface Generating {
  readonly kind: "generating";
  /** Index of the engine's next record. */
  next: number;
  /** When the engine last gave a record, on `performance.now()`'s clock. */
  heardAt: number;
}

type StateKind = StreamState["kind"];

/** The states from which a stream may enter each state. */
const enteredFrom: Readonly<Record<StateKind, readonly StateKind[]>> = {
  preparing: [],
  waiting: ["preparing"],
  suspected: ["waiting"],
  generating: ["preparing", "waiting", "suspected"],
  closed: ["preparing", "waiting", "suspected", "generating"],
};

/** The facts of a stream that do not change while the stream is here. */
export interface StreamFacts {
  readonly held: Held;
  /**
   * The stream was delivered before, to another worker or to this one before its connection was
   * cut.
   */
  readonly takenOver: boolean;
  readonly spec: GenerationSpec;
  /** The stream's tenant, and its share. */
  readonly sharer: Sharer;
  /** The job's labels, as tokens. The publisher sends records for each label. */
  readonly labels: readonly string[];
}

export class Stream implements StreamFacts {
  readonly held: Held;
  readonly takenOver: boolean;
  readonly spec: GenerationSpec;
  readonly sharer: Sharer;
  readonly labels: readonly string[];
  /** The model's time for this stream at this worker, in ms. */
  ranMs = 0;
  /** Undefined before the engine has the stream, and for a stream that is not sampled. */
  trace: StreamTrace | undefined;
  readonly figures = new StreamFigures();
  /** Bytes of the records that this worker's engine made. */
  bytesOut = 0;
  /** When the loop took the stream on, on `performance.now()`'s clock. */
  readonly begunAt = performance.now();
  /** When the last record came into the log, for figures; at first `begunAt`. */
  respondedAt = this.begunAt;
  #state: StreamState = { kind: "preparing" };

  constructor({ held, takenOver, spec, sharer, labels }: StreamFacts) {
    this.held = held;
    this.takenOver = takenOver;
    this.spec = spec;
    this.sharer = sharer;
    this.labels = labels;
  }

  get state(): StreamState {
    return this.#state;
  }

  /** Names the stream at this worker, and in the engine. */
  get key(): string {
    return this.held.delivery.key;
  }

  get closed(): boolean {
    return this.#state.kind === "closed";
  }

  /** Index of the next record; undefined while it is unknown, and after the stream's end. */
  get next(): number | undefined {
    const state = this.#state;
    switch (state.kind) {
      case "generating":
        return state.next;
      case "waiting":
      case "suspected":
        return state.generation.next;
      case "preparing":
      case "closed":
        return undefined;
    }
  }

  /** The time since which the engine has given no record, on `performance.now()`'s clock. */
  get silentSince(): number {
    return this.#state.kind === "generating" ? this.#state.heardAt : this.begunAt;
  }

  /** preparing → waiting */
  waitForTurn(generation: NewGeneration): void {
    this.#enter({ kind: "waiting", generation });
  }

  /** waiting → suspected */
  suspect(generation: NewGeneration): void {
    this.#enter({ kind: "suspected", generation });
  }

  /** preparing, waiting or suspected → generating */
  enterEngine({ next, prompt }: NewGeneration): void {
    this.#enter({ kind: "generating", next, heardAt: this.begunAt });
    this.figures.joinedAt = performance.now();
    this.figures.prompt = prompt.length;
  }

  /**
   * Notes that the engine gave record `index`.
   * @returns false if this is not the next record: the engine computed it for an earlier stay of
   * the same entry at this worker, or after the stream was closed
   */
  advance(index: number, now: number): boolean {
    const state = this.#state;
    if (state.kind !== "generating" || state.next !== index) return false;
    state.next = index + 1;
    state.heardAt = now;
    return true;
  }

  /** any other state → closed */
  close(): void {
    this.#enter({ kind: "closed" });
  }

  /** @throws Error if `state` may not follow the present state, which is a bug of ours */
  #enter(state: StreamState): void {
    if (!enteredFrom[state.kind].includes(this.#state.kind)) {
      throw new Error(`a stream that is ${this.#state.kind} cannot become ${state.kind}`);
    }
    this.#state = state;
  }
}

/**
 * @throws ZodError if the request is not a generator's. The lane has refused such an entry before.
 */
export function streamOf(held: Held, takenOver: boolean): Stream {
  const { generation, labels, share } = held.request.meta;
  return new Stream({
    held,
    takenOver,
    spec: generationSpec.parse(generation),
    sharer: { tenant: held.delivery.tenant, ...generationShare.parse(share) },
    // Other labels would give invalid subjects. Such a label does not keep the request from
    // running.
    labels: labelTokens.safeParse(labels).data ?? [],
  });
}

/**
 * When the stream expires, on `performance.now()`'s clock; Infinity for never. The deadline is for
 * the first token. With a token, the stream continues to its end at any worker, unless its client
 * limited the whole answer.
 */
export function expiryOf({ held, spec, next }: Pick<Stream, "held" | "spec" | "next">): number {
  // A stream in preparation may have tokens in its log, and a closed stream has ended.
  if (next === undefined) return Infinity;
  if (next === 0) return held.expiresAt;
  return spec.restMs === undefined ? Infinity : held.expiresAt + spec.restMs;
}

/**
 * @returns the number of choices in these streams. Each choice takes a slot until its stream has
 * gone.
 */
export function choicesOf(streams: ReadonlyMap<string, Stream>): number {
  let choices = 0;
  for (const { spec } of streams.values()) choices += spec.sampling.choices;
  return choices;
}

/** @returns the number of streams on their way into the engine */
export function waitingIn(streams: ReadonlyMap<string, Stream>): number {
  let waiting = 0;
  for (const { state } of streams.values()) if (state.kind !== "generating" && state.kind !== "closed") waiting++;
  return waiting;
}
