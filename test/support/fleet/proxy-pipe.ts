/**
 * One direction of one proxied connection. It passes chunks on in order, when the line's conditions
 * let it.
 */
import type { Socket } from "node:net";

/**
 * What a direction does to the bytes that cross it. All connections of a proxy share it, and it
 * changes while they run.
 */
export interface LineConditions {
  /**
   * Bytes wait instead of crossing, as behind a dropped route whose packets TCP keeps sending
   * again.
   */
  blackHoled: boolean;
  delayMs: number;
  jitterMs: number;
  /** 0 means that there is no limit. */
  bytesPerSecond: number;
}

export const openLine = (): LineConditions => ({ blackHoled: false, delayMs: 0, jitterMs: 0, bytesPerSecond: 0 });

/**
 * While this many bytes are held, the source is not read, since the sender must feel the slow line.
 */
const HIGH_WATER = 1_048_576;

export class ProxyPipe {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #conditions: LineConditions;
  readonly #held: { chunk: Buffer; dueAt: number }[] = [];
  #heldBytes = 0;
  /**
   * When the line will have sent all that was handed to it so far, on `performance.now()`'s clock.
   * Later chunks queue up behind.
   */
  #lineFreeAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #draining = false;
  /** This connection alone holds its bytes back. */
  #stalled = false;

  /** @param admit sees each chunk first; false swallows it */
  constructor(from: Socket, to: Socket, conditions: LineConditions, admit: (chunk: Buffer) => boolean) {
    this.#from = from;
    this.#to = to;
    this.#conditions = conditions;
    from.on("data", (chunk: Buffer) => {
      if (admit(chunk)) this.#take(chunk);
    });
    from.on("end", () => {
      if (this.#held.length === 0) to.end();
    });
    from.on("close", () => clearTimeout(this.#timer));
    to.on("drain", () => {
      this.#draining = false;
      this.flush();
    });
  }

  /** From now on, what comes waits, on this connection alone. */
  stall(): void {
    this.#stalled = true;
  }

  /** Whether these bytes wait here, in one piece. */
  holds(text: string): boolean {
    return this.#held.some(({ chunk }) => chunk.includes(text));
  }

  /** Ends the stall: what waited is sent, and then the connection ends. */
  release(): void {
    this.#stalled = false;
    this.flush();
    this.#to.end();
  }

  /** Sends what is due. It is called again whenever the conditions have changed. */
  flush(): void {
    clearTimeout(this.#timer);
    while (!this.#conditions.blackHoled && !this.#stalled && !this.#draining) {
      const next = this.#held[0];
      if (next === undefined) break;
      const waitMs = next.dueAt - performance.now();
      if (waitMs > 0.5) {
        this.#timer = setTimeout(() => this.flush(), waitMs);
        break;
      }
      this.#held.shift();
      this.#heldBytes -= next.chunk.length;
      this.#draining = !this.#to.write(next.chunk);
    }
    if (this.#heldBytes < HIGH_WATER) this.#from.resume();
    if (this.#held.length === 0 && this.#from.readableEnded) this.#to.end();
  }

  #take(chunk: Buffer): void {
    const { delayMs, jitterMs, bytesPerSecond } = this.#conditions;
    const sentAt = Math.max(performance.now(), this.#lineFreeAt);
    this.#lineFreeAt = sentAt + (bytesPerSecond > 0 ? (chunk.length / bytesPerSecond) * 1_000 : 0);
    const previousDue = this.#held.at(-1)?.dueAt ?? 0;
    const dueAt = Math.max(previousDue, this.#lineFreeAt + delayMs + Math.random() * jitterMs);
    this.#held.push({ chunk, dueAt });
    this.#heldBytes += chunk.length;
    if (this.#heldBytes >= HIGH_WATER) this.#from.pause();
    this.flush();
  }
}
