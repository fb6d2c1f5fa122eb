/**
 * One direction of a proxied connection. A pipe passes chunks in order, as soon as the line's
 * conditions allow.
 */
import type { Socket } from "node:net";

/**
 * How a direction treats the bytes that cross it. All connections of a proxy share these
 * conditions, which change while connections run.
 */
export interface LineConditions {
  /**
   * Bytes wait instead of crossing, as behind a dropped route whose packets TCP keeps sending
   * again.
   */
  blackHoled: boolean;
  delayMs: number;
  jitterMs: number;
  /** 0 for no limit. */
  bytesPerSecond: number;
}

export const openLine = (): LineConditions => ({ blackHoled: false, delayMs: 0, jitterMs: 0, bytesPerSecond: 0 });

/**
 * While the pipe holds this many bytes, it does not read the source, because the sender must feel
 * the slow line.
 */
const HIGH_WATER = 1_048_576;

export class ProxyPipe {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #conditions: LineConditions;
  readonly #held: { chunk: Buffer; dueAt: number }[] = [];
  #heldBytes = 0;
  /**
   * When the line will have sent every chunk so far, on the clock of `performance.now()`. Later
   * chunks queue up behind.
   */
  #lineFreeAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #draining = false;
  /** Whether this connection alone holds its bytes back. */
  #stalled = false;

  /** @param admit sees each chunk first, and drops the chunk if it returns false */
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

  /** Holds back all later bytes, on this connection alone. */
  stall(): void {
    this.#stalled = true;
  }

  /** Whether these bytes wait here, in one piece. */
  holds(text: string): boolean {
    return this.#held.some(({ chunk }) => chunk.includes(text));
  }

  /** Ends the stall: sends the held bytes, and then ends the connection. */
  release(): void {
    this.#stalled = false;
    this.flush();
    this.#to.end();
  }

  /**
   * Sends the chunks that are due. Callers must call again after every change of the conditions.
   */
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
