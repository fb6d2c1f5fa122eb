/**
 * Queues the streams of other workers until their turn here. A stream counts as begun when its turn
 * has come (take-over.lua), so only few begin at a time. If this worker ends too, the waiting
 * streams do not come under suspicion, and need not run alone.
 */
import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import { callGroups } from "#shared/redis/slots.js";
import { retrying } from "#shared/retry.js";
import type { StreamQueue } from "#shared/queue/work/lane.js";
import { takeOver, type Takeover } from "#shared/queue/work/streams/take-over.js";
import type { Stream } from "./stream.js";
import type { NewGeneration } from "../engine/protocol.js";

/** A stream that waits for its turn, with the generation for the engine. */
export interface Turn {
  readonly stream: Stream;
  readonly generation: NewGeneration;
  /** The time of the log's last growth, in ms of Redis's clock. */
  readonly standsSince: number;
}

export interface TakeoverSettings {
  readonly queue: StreamQueue;
  readonly log: Logger;
  /**
   * Runs with the verdict on a stream whose turn has come, unless the stream was closed meanwhile.
   */
  readonly begun: (turn: Turn, verdict: Takeover) => void;
}

/**
 * Most begun streams without a token here yet. So many keep the engine busy while the worker asks
 * Redis about the next streams.
 */
const MAX_BEGUN = 48;
/** How long calls to Redis retry, in ms. */
const BUDGET_MS = 5_000;

/** The cost of taking over the streams that came together. */
interface Cost {
  readonly begunAt: number;
  /** Entries without a token here yet. */
  readonly waiting: Set<string>;
  /** Streams that could continue here, and the number of tokens that the engine computed again. */
  streams: number;
  tokens: number;
}

export class Takeovers {
  readonly #settings: TakeoverSettings;
  #waiting: Turn[] = [];
  /** Streams whose turn has come and that have no token here yet, by their keys. */
  readonly #begun = new Map<string, Turn>();
  /** Costs whose count is not complete, by key. */
  readonly #costs = new Map<string, Cost>();
  #asking = false;
  #scheduled = false;

  constructor(settings: TakeoverSettings) {
    this.#settings = settings;
  }

  /**
   * Notes that these streams have come together. After the first token of the last stream, the
   * worker logs their cost.
   */
  arrive(keys: readonly string[], now: number): void {
    const cost = { begunAt: now, waiting: new Set(keys), streams: 0, tokens: 0 };
    for (const key of keys) this.#costs.set(key, cost);
  }

  /** Adds a prepared stream, which now waits for its turn. */
  add(turn: Turn): void {
    const { key, prompt, replayed } = turn.generation;
    const cost = this.#costs.get(key);
    if (cost !== undefined) {
      cost.streams++;
      for (const { tokens } of replayed) cost.tokens += prompt.length + tokens.length;
    }
    // Streams without any token begin by lot. Otherwise the same streams would begin beside a fatal
    // prompt each time.
    this.#waiting.splice(Math.floor(Math.random() * (this.#waiting.length + 1)), 0, turn);
    this.#schedule();
  }

  /**
   * Notes that the stream has its first token here, or will have none. Does nothing for a stream
   * that never waited here.
   */
  end(key: string, now: number): void {
    if (this.#begun.delete(key)) this.#schedule();
    const cost = this.#costs.get(key);
    if (cost === undefined) return;
    this.#costs.delete(key);
    cost.waiting.delete(key);
    if (cost.waiting.size > 0 || cost.streams === 0) return;
    const { streams, tokens, begunAt } = cost;
    this.#settings.log.info({ streams, tokens, ms: Math.round(now - begunAt) }, "streams taken over");
  }

  /** Begins the next streams, once for all that come or go in this turn of the event loop. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#proceed();
    });
  }

  #proceed(): void {
    // A few places stay empty, so that one call asks about several next streams.
    if (this.#asking || this.#begun.size > (MAX_BEGUN * 2) / 3) return;
    this.#waiting = this.#waiting.filter(({ stream }) => !stream.closed);
    const chosen = inTurn(this.#waiting, [...this.#begun.values()]).slice(0, MAX_BEGUN - this.#begun.size);
    if (chosen.length === 0) return;
    this.#waiting = this.#waiting.filter((turn) => !chosen.includes(turn));
    for (const turn of chosen) this.#begun.set(turn.generation.key, turn);
    this.#asking = true;
    void this.#begin(chosen).finally(() => {
      this.#asking = false;
      this.#proceed();
    });
  }

  async #begin(chosen: readonly Turn[]): Promise<void> {
    const { queue } = this.#settings;
    const slotKeyOf = ({ stream }: Turn) => bucketTag(stream.held.delivery.bucket);
    await Promise.all(callGroups(queue.redis, chosen, slotKeyOf).map((some) => this.#beginTogether(some)));
  }

  /** In a Cluster, the turns are of one bucket, because another bucket's master may be away. */
  async #beginTogether(chosen: readonly Turn[]): Promise<void> {
    const { queue, log, begun } = this.#settings;
    const deliveries = chosen.map(({ stream }) => stream.held.delivery);
    const name = randomUUID();
    let verdicts: readonly Takeover[] = [];
    try {
      verdicts = await retrying(() => takeOver(queue, deliveries, name), { budgetMs: BUDGET_MS });
    } catch (error) {
      log.warn({ error: String(error) }, "streams will be tried again");
    }
    for (const [i, turn] of chosen.entries()) {
      const verdict = verdicts[i] ?? "lost";
      if (verdict !== "together") this.#begun.delete(turn.generation.key);
      if (!turn.stream.closed) begun(turn, verdict);
    }
  }
}

/** The facts that decide the order of turns. */
export interface TurnFacts {
  /** `next`: the number of records in the stream's log. */
  readonly generation: Pick<NewGeneration, "next">;
  readonly standsSince: number;
}

/**
 * The stream that has stood longest goes first. Streams without any token come last, after all
 * other streams have a token here. A prompt that ends its worker belongs to such a stream, and ends
 * every stream computed beside it.
 * @param begun streams that have begun and have no token here yet
 * @returns those of `waiting` that may begin now, in order
 */
export function inTurn<T extends TurnFacts>(waiting: readonly T[], begun: readonly TurnFacts[]): readonly T[] {
  const interrupted = waiting.filter(hasTokens);
  if (interrupted.length > 0) return interrupted.sort((a, b) => a.standsSince - b.standsSince);
  return begun.some(hasTokens) ? [] : waiting;
}

function hasTokens({ generation }: TurnFacts): boolean {
  return generation.next > 0;
}
