/** Tells what takeovers cost: from the moment that streams come to this worker until the last of them has its first token here. */
import type { Logger } from "pino";
import type { NewGeneration } from "./protocol.js";

interface Takeover {
  readonly begunAt: number;
  readonly waiting: Set<string>;
  /** Streams that have had a token here, and what was computed again for them. */
  streams: number;
  tokens: number;
}

export class Takeovers {
  readonly #log: Logger;
  /** By entry. */
  readonly #open = new Map<string, Takeover>();

  constructor(log: Logger) {
    this.#log = log;
  }

  begin(entries: readonly string[], now: number): void {
    const takeover = { begunAt: now, waiting: new Set(entries), streams: 0, tokens: 0 };
    for (const entry of entries) this.#open.set(entry, takeover);
  }

  /** What its caches hold has to be computed again. */
  prepared({ key, prompt, replayed }: NewGeneration): void {
    const takeover = this.#open.get(key);
    if (takeover === undefined) return;
    takeover.streams++;
    for (const { tokens } of replayed) takeover.tokens += prompt.length + tokens.length;
  }

  /** It has its first token, or is not this worker's any more. */
  end(entry: string, now: number): void {
    const takeover = this.#open.get(entry);
    if (takeover === undefined) return;
    this.#open.delete(entry);
    takeover.waiting.delete(entry);
    if (takeover.waiting.size > 0 || takeover.streams === 0) return;
    const { streams, tokens, begunAt } = takeover;
    this.#log.info({ streams, tokens, ms: Math.round(now - begunAt) }, "streams taken over");
  }
}
