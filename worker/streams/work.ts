/** The work on the entries of a generator's lanes: they run as streams. */
import { generationSpec } from "#shared/contract/generation.js";
import { decodeFrame } from "#shared/frame.js";
import type { Delivery } from "#shared/queue/entry.js";
import type { StreamQueue } from "#shared/queue/work/lane.js";
import type { Exclusive } from "../lane/exclusive.js";
import type { Alone } from "../lane/alone.js";
import type { ModelCounts } from "../lane/counts.js";
import { unbatched, type Held, type Holdings } from "../lane/holdings.js";
import type { LaneContext, LaneWork } from "../lane/lane.js";
import type { ServingGenerator } from "./load.js";
import { StreamLoop } from "./loop.js";
import { slotsFor } from "./plan.js";

export interface StreamWorkSettings {
  readonly queue: StreamQueue;
  /** Shared by all lanes of this process. */
  readonly exclusive: Exclusive;
  readonly maxRunsAlone: number;
  /** As in `StreamLoopParts`. */
  readonly timings: boolean;
}

/** Most entries to read at once, so that workers that read side by side share new entries. */
const READ_AT_ONCE = 8;

export class StreamWork implements LaneWork {
  readonly batching = unbatched;
  readonly counts: ModelCounts;
  readonly #slots: number;
  readonly #holdings: Holdings;
  readonly #loop: StreamLoop;

  constructor(model: ServingGenerator, context: LaneContext, settings: StreamWorkSettings) {
    this.counts = context.counts;
    this.#slots = model.slots;
    this.#holdings = context.holdings;
    this.#loop = new StreamLoop({ ...context, ...settings, model });
  }

  room(): number {
    const free = slotsFor("fresh", this.#slots) - this.#loop.slotsTaken;
    return Math.min(READ_AT_ONCE, free) - this.#holdings.waiting.length;
  }

  suspectRoom(): number {
    return slotsFor("suspect", this.#slots) - this.#loop.slotsTaken - this.#holdings.suspects.length;
  }

  accepts({ frame }: Delivery): boolean {
    return generationSpec.safeParse(decodeFrame(frame).meta["generation"]).success;
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#loop.run(signal);
  }

  /** Generates the text of an ensemble's step, beside other streams. */
  call(held: Held): void {
    this.#loop.call(held);
  }

  /** The same by itself, as long as the request of the ensemble is alone. */
  callAlone(held: Held, alone: Alone): Promise<void> {
    return this.#loop.callAlone(held, alone);
  }
}
