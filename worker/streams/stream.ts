/** A stream at this worker, from the moment that the loop takes it on until its end here. */
import { generationSpec, labelTokens, type GenerationSpec } from "#shared/contract/generation.js";
import type { Held } from "../lane/holdings.js";
import type { NewGeneration } from "../engine/protocol.js";

/**
 * Where a stream is in its life at this worker. Before all of these it lies in the lane's holdings.
 */
export type StreamState =
  /** Its log is being read and its prompt turned into tokens; how far it has come is not known. */
  | { readonly kind: "preparing" }
  /** Another worker had it before; it waits for its turn to go on here (takeover.ts). */
  | { readonly kind: "waiting"; readonly generation: NewGeneration }
  /** Its last workers ended without a new record of it; it waits to run while nothing else does. */
  | { readonly kind: "suspected"; readonly generation: NewGeneration }
  /** The engine computes it. */
  | Generating
  /** Nothing more is heard of it: its end is on the way to Redis, or another worker has it. */
  | { readonly kind: "closed" };

/**
 * This is the only state that changes in place: it does so once per record, which is the hot path.
 */
interface Generating {
  readonly kind: "generating";
  /** Index of the record that the engine gives next. */
  next: number;
  /** When the engine last gave a record, on `performance.now()`'s clock. */
  heardAt: number;
}

type StateKind = StreamState["kind"];

/** The states from which each state may be entered. */
const enteredFrom: Readonly<Record<StateKind, readonly StateKind[]>> = {
  preparing: [],
  waiting: ["preparing"],
  suspected: ["waiting"],
  generating: ["preparing", "waiting", "suspected"],
  closed: ["preparing", "waiting", "suspected", "generating"],
};

/** What does not change about a stream while it is here. */
export interface StreamFacts {
  readonly held: Held;
  /** It was delivered to another worker before, or to this one before its connection was cut. */
  readonly takenOver: boolean;
  readonly spec: GenerationSpec;
  /** Of the job that it runs, as tokens: its records are published for each. */
  readonly labels: readonly string[];
}

export class Stream implements StreamFacts {
  readonly held: Held;
  readonly takenOver: boolean;
  readonly spec: GenerationSpec;
  readonly labels: readonly string[];
  /** When the loop took it on, on `performance.now()`'s clock. */
  readonly #begunAt = performance.now();
  #state: StreamState = { kind: "preparing" };

  constructor({ held, takenOver, spec, labels }: StreamFacts) {
    this.held = held;
    this.takenOver = takenOver;
    this.spec = spec;
    this.labels = labels;
  }

  get state(): StreamState {
    return this.#state;
  }

  /** Names it at this worker, and in the engine. */
  get key(): string {
    return this.held.delivery.key;
  }

  get closed(): boolean {
    return this.#state.kind === "closed";
  }

  /** Index of the record that comes next; undefined while that is not known, and after its end. */
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

  /** Since when the engine has given no record of it, on `performance.now()`'s clock. */
  get silentSince(): number {
    return this.#state.kind === "generating" ? this.#state.heardAt : this.#begunAt;
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
  enterEngine({ next }: NewGeneration): void {
    this.#enter({ kind: "generating", next, heardAt: this.#begunAt });
  }

  /**
   * Notes that the engine gave record `index`.
   * @returns false if that is not the next record: the engine computed it for an earlier stay of
   * the same entry at this worker, or after this stream was closed
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

  /**
   * @throws Error when the stream is in a state from which `state` cannot be entered: a bug of ours
   */
  #enter(state: StreamState): void {
    if (!enteredFrom[state.kind].includes(this.#state.kind)) {
      throw new Error(`a stream that is ${this.#state.kind} cannot become ${state.kind}`);
    }
    this.#state = state;
  }
}

/**
 * @throws ZodError when the request is none of a generator; the lane has refused such an entry
 * before
 */
export function streamOf(held: Held, takenOver: boolean): Stream {
  const { generation, labels } = held.request.meta;
  return new Stream({
    held,
    takenOver,
    spec: generationSpec.parse(generation),
    // What reads otherwise would be no subject of ours. It does not keep the request from running.
    labels: labelTokens.safeParse(labels).data ?? [],
  });
}

/**
 * When it is too late for this stream, on `performance.now()`'s clock; Infinity for never. Its
 * deadline is that of its first token: a stream that has one goes on to its end, whichever worker
 * computes it, unless its client limited the whole answer.
 */
export function expiryOf({ held, spec, next }: Pick<Stream, "held" | "spec" | "next">): number {
  // A stream that is being prepared may have tokens in its log; one that is closed has ended.
  if (next === undefined) return Infinity;
  if (next === 0) return held.expiresAt;
  return spec.restMs === undefined ? Infinity : held.expiresAt + spec.restMs;
}

/**
 * @returns how many choices these streams have together; each takes a slot until its stream has
 * gone
 */
export function choicesOf(streams: ReadonlyMap<string, Stream>): number {
  let choices = 0;
  for (const { spec } of streams.values()) choices += spec.sampling.choices;
  return choices;
}
