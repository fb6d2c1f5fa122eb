/** The span of a stream's way from the gateway to one reader, until the reader leaves. */
import { tokenRecord } from "#shared/contract/generation.js";
import { InferenceError } from "#shared/errors.js";
import type { Attributes, SpanEvent } from "#shared/trace/span.js";
import type { StreamRecord } from "../stream/open-stream.js";
import type { RequestTrace } from "./request-trace.js";

/** The most events of a span. While NATS is away, every page has records from the log. */
const MOST_EVENTS = 32;

/** The stream, and the reader's place in it. */
export interface Relayed {
  /** The public id of the request. */
  readonly request: string;
  readonly model: string;
  /** Undefined if the gateway does not know it. */
  readonly version?: string | undefined;
  readonly tenant: string;
  /** The index from which the reader continues; absent or 0 if it begins with the first record. */
  readonly from?: number;
  /** When the reader asked, on `performance.now()`'s clock; absent: now. */
  readonly startAt?: number;
}

export class RelaySpan {
  readonly #trace: RequestTrace;
  readonly #relayed: Relayed;
  readonly #startAt: number;
  readonly #events: SpanEvent[] = [];
  #hasRecords = false;
  #error: string | undefined;

  constructor(trace: RequestTrace, relayed: Relayed) {
    this.#trace = trace;
    this.#relayed = relayed;
    const { from = 0, startAt = performance.now() } = relayed;
    this.#startAt = startAt;
    if (from > 0) this.#note("resumed", from);
  }

  /** Hands on the pages of a stream, and ends the span after the last one. */
  async *follow(pages: AsyncIterable<readonly StreamRecord[]>): AsyncGenerator<readonly StreamRecord[], void> {
    try {
      for await (const page of pages) {
        this.saw(page);
        yield page;
      }
    } catch (failure) {
      this.failed(failure);
      throw failure;
    } finally {
      this.end();
    }
  }

  /** Notes records that the reader gets now. */
  saw(page: readonly StreamRecord[]): void {
    const [first] = page;
    if (first === undefined) return;
    if (!this.#hasRecords) this.#note("first_record", first.index);
    this.#hasRecords = true;
    const filled = page.find(({ fillsGap }) => fillsGap === true);
    if (filled !== undefined) this.#note("gap_filled", filled.index);
    const last = page.at(-1);
    if (last?.final === true) this.#error = this.#noteEnd(last);
  }

  failed(failure: unknown): void {
    this.#error = failure instanceof InferenceError ? failure.code : "internal";
  }

  end(): void {
    const { request, model, version, tenant } = this.#relayed;
    if (this.#error !== undefined) this.#trace.failed(this.#error);
    this.#trace.record({
      name: "relay",
      kind: "internal",
      ids: this.#trace.child(),
      startAt: this.#startAt,
      endAt: performance.now(),
      attributes: commonOf({ request, model, version, tenant }),
      events: this.#events,
      error: this.#error,
    });
  }

  #note(name: string, index: number): void {
    if (this.#events.length >= MOST_EVENTS) return;
    this.#events.push({ name, at: performance.now(), attributes: { "baton.index": index } });
  }

  /** @returns the code of the error with which the stream ends */
  #noteEnd({ json }: StreamRecord): string | undefined {
    const { usage, error, choices = [] } = tokenRecord.safeParse(JSON.parse(json)).data ?? {};
    const reasons = choices.flatMap(({ finish_reason: reason }) => reason ?? []);
    this.#trace.note({
      "gen_ai.usage.input_tokens": usage?.prompt_tokens,
      "gen_ai.usage.output_tokens": usage?.completion_tokens,
      "gen_ai.response.finish_reasons": reasons.length > 0 ? reasons : undefined,
    });
    return error?.code;
  }
}

/** The attributes that every span about a stream has. */
export function commonOf({ request, model, version, tenant }: Relayed): Attributes {
  return { "baton.model": model, "baton.version": version, "baton.request": request, "baton.tenant": tenant };
}
