/** The span of a stream's way from the gateway to one reader, until the reader leaves. */
import { tokenRecord } from "#shared/contract/generation.js";
import { InferenceError } from "#shared/errors.js";
import type { SpanEvent } from "#shared/trace/span.js";
import type { StreamRecord } from "../stream/open-stream.js";
import type { RequestTrace } from "./request-trace.js";

export class RelaySpan {
  readonly #trace: RequestTrace;
  readonly #request: string;
  readonly #startAt = performance.now();
  readonly #events: SpanEvent[] = [];

  /** @param request public id */
  constructor(trace: RequestTrace, request: string) {
    this.#trace = trace;
    this.#request = request;
  }

  /** Hands on the pages of a stream, and ends the span after the last one. */
  async *follow(pages: AsyncIterable<readonly StreamRecord[]>): AsyncGenerator<readonly StreamRecord[], void> {
    let error: string | undefined;
    try {
      for await (const page of pages) {
        const [first] = page;
        if (first !== undefined && this.#events.length === 0) this.#note("first_record", first.index);
        const last = page.at(-1);
        if (last?.final === true) error = this.#noteEnd(last);
        yield page;
      }
    } catch (failure) {
      error = failure instanceof InferenceError ? failure.code : "internal";
      throw failure;
    } finally {
      this.#end(error);
    }
  }

  #note(name: string, index: number): void {
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

  #end(error: string | undefined): void {
    if (error !== undefined) this.#trace.failed(error);
    this.#trace.record({
      name: "relay",
      kind: "internal",
      ids: this.#trace.child(),
      startAt: this.#startAt,
      endAt: performance.now(),
      attributes: { "baton.request": this.#request },
      events: this.#events,
      error,
    });
  }
}
