/**
 * Streams that were another worker's wait here for their turn: a stream counts as begun when it comes (take-over.lua), so few do at a time. Should this worker end too, those that only
 * waited have nothing against them, and are not made to run alone for it.
 */
import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { retrying } from "#shared/retry.js";
import type { StreamQueue } from "../queue/lane.js";
import { takeOver, type Takeover } from "../queue/take-over.js";
import type { Active } from "./active.js";
import type { NewGeneration } from "./protocol.js";

export interface Returned {
  readonly active: Active;
  readonly generation: NewGeneration;
  /** Redis ms. */
  readonly standsSince: number;
}

export interface ReturningSettings {
  readonly queue: StreamQueue;
  readonly log: Logger;
  /** What its takeover says of one whose turn has come. */
  readonly turn: (one: Returned, verdict: Takeover) => void;
}

/** Begun at a time: enough for the engine to have something to compute while the next are asked for. */
const AT_ONCE = 48;
/** Past this the leases are gone too. */
const BUDGET_MS = 5_000;

export class Returning {
  readonly #settings: ReturningSettings;
  #waiting: Returned[] = [];
  /** By entry: those that have begun, and have no token here yet. */
  readonly #begun = new Map<string, Returned>();
  #asking = false;
  #scheduled = false;

  constructor(settings: ReturningSettings) {
    this.#settings = settings;
  }

  add(one: Returned): void {
    this.#waiting.splice(Math.floor(Math.random() * (this.#waiting.length + 1)), 0, one);
    this.#schedule();
  }

  /** It has its first token, or is not to have one here. */
  end(entry: string): void {
    if (this.#begun.delete(entry)) this.#schedule();
  }

  /** Once for all that come or go in this turn of the event loop. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#proceed();
    });
  }

  #proceed(): void {
    if (this.#asking || this.#begun.size > (AT_ONCE * 2) / 3) return;
    this.#waiting = this.#waiting.filter(({ active }) => !active.closed);
    const chosen = this.#next().slice(0, AT_ONCE - this.#begun.size);
    if (chosen.length === 0) return;
    this.#waiting = this.#waiting.filter((one) => !chosen.includes(one));
    for (const one of chosen) this.#begun.set(one.generation.key, one);
    this.#asking = true;
    void this.#begin(chosen).finally(() => {
      this.#asking = false;
      this.#proceed();
    });
  }

  /**
   * Whoever has stood longest. Streams without any token come when all others have one here: a prompt that ends its worker is one of them, and takes along what is computed beside it.
   * They come by lot, or the same ones would be beside it each time.
   */
  #next(): Returned[] {
    const middle = this.#waiting.filter(isInTheMiddle);
    if (middle.length > 0) return middle.sort((a, b) => a.standsSince - b.standsSince);
    return [...this.#begun.values()].some(isInTheMiddle) ? [] : this.#waiting;
  }

  async #begin(chosen: readonly Returned[]): Promise<void> {
    const { queue, log, turn } = this.#settings;
    const deliveries = chosen.map(({ active }) => active.held.delivery);
    const name = randomUUID();
    let verdicts: readonly Takeover[] = [];
    try {
      verdicts = await retrying(() => takeOver(queue, deliveries, name), { budgetMs: BUDGET_MS });
    } catch (error) {
      log.warn({ error: String(error) }, "streams were left to another worker");
    }
    for (const [i, one] of chosen.entries()) {
      const verdict = verdicts[i] ?? "lost";
      if (verdict !== "together") this.#begun.delete(one.generation.key);
      if (!one.active.closed) turn(one, verdict);
    }
  }
}

function isInTheMiddle({ generation }: Returned): boolean {
  return generation.next > 0;
}
