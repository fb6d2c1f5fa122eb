/** A stream whose records the test writes. */
import type { GenerationRequest } from "../../../gateway/admission/inference.js";
import type { OpenStream, StreamRecord } from "../../../gateway/stream/open-stream.js";
import { recordOf } from "../../../gateway/stream/records.js";
import type { TokenRecord } from "#shared/contract/generation.js";
import { delta, finalRecord, record } from "../../fixtures/token-records.js";

/** A log in memory that grows, and that several readers may read. */
export class RecordedStream implements OpenStream {
  readonly records: TokenRecord[] = [];
  cancelled = false;
  /** How many readers the log has now. */
  readers = 0;
  #wake: (() => void)[] = [];

  constructor(
    readonly id: string,
    readonly request: GenerationRequest,
  ) {}

  append(...records: TokenRecord[]): this {
    this.records.push(...records);
    this.#wakeAll();
    return this;
  }

  async *read(from: number, signal: AbortSignal): AsyncGenerator<StreamRecord[], void> {
    const onAbort = (): void => this.#wakeAll();
    signal.addEventListener("abort", onAbort);
    this.readers++;
    this.#wakeAll();
    try {
      for (let index = from; !signal.aborted;) {
        const next = this.records[index];
        if (next === undefined) await new Promise<void>((resolve) => this.#wake.push(resolve));
        else {
          yield [recordOf(index, JSON.stringify(next))];
          if (next.final === true) return;
          index++;
        }
      }
    } finally {
      this.readers--;
      signal.removeEventListener("abort", onAbort);
      this.#wakeAll();
    }
  }

  cancel(): Promise<void> {
    this.cancelled = true;
    this.#wakeAll();
    return Promise.resolve();
  }

  /** Resolves when `state` holds. Tests `state` again after every change of the stream. */
  async until(state: (stream: RecordedStream) => boolean): Promise<void> {
    while (!state(this)) await new Promise<void>((resolve) => this.#wake.push(resolve));
  }

  #wakeAll(): void {
    const waiting = this.#wake;
    this.#wake = [];
    for (const resolve of waiting) resolve();
  }
}

/**
 * Answers with "Hello, you!" in four records. The first has no text, like a record whose text may
 * begin a stop string.
 */
export function hello(_: unknown, stream: RecordedStream): void {
  stream.append(
    record(0, delta("")),
    record(1, delta("Hel")),
    record(2, delta("lo, ")),
    finalRecord(3, 4, delta("you!", { finish_reason: "stop" })),
  );
}
