/**
 * What becomes known of a client's request while it is answered, for the access log. Each part that
 * learns something notes it here. Without an access log there are no facts, and nothing is noted.
 */
import { tokenRecord } from "#shared/contract/generation.js";
import { readTimings, type Timings } from "#shared/contract/timings.js";
import { InferenceError, type ErrorCode } from "#shared/errors.js";
import type { StreamRecord } from "../stream/open-stream.js";
import type { AnyRequest, Inference } from "../admission/inference.js";

/** A member is undefined until it is known. */
export interface RequestFacts {
  tenant: string | undefined;
  model: string | undefined;
  version: string | undefined;
  /** The client's id of the sequence. */
  sequence: string | undefined;
  /** The number of the step, counted from START. */
  step: number | undefined;
  /** The public id of the inference. */
  request: string | undefined;
  /** The error of the answer. */
  code: ErrorCode | undefined;
  /** Whether an earlier request under the same key has been admitted in the place of this one. */
  replayed: boolean | undefined;
  timings: Timings | undefined;
  /** The id of the trace, if the request is sampled. */
  trace: string | undefined;
  /** Of the answer's streams. */
  records: number | undefined;
  tokensIn: number | undefined;
  tokensOut: number | undefined;
}

/** An inference that notes what it learns of its requests; the same one if nobody wants to know. */
export function noted(inference: Inference, facts: RequestFacts | undefined): Inference {
  if (facts === undefined) return inference;
  return {
    async infer(request) {
      noteRequest(facts, request);
      const outcome = await inference.infer(request);
      facts.request = outcome.id;
      facts.replayed = outcome.isRepeated;
      facts.timings = readTimings(outcome.note);
      if (outcome.kind === "error") facts.code = outcome.code;
      else {
        facts.version = outcome.version;
        facts.step = outcome.step;
      }
      return outcome;
    },
    async inferLater(request) {
      noteRequest(facts, request);
      return (facts.request = await inference.inferLater(request));
    },
    async generate(request) {
      noteRequest(facts, request);
      const stream = await inference.generate(request);
      // A request with several prompts has several streams. The first names the request.
      facts.request ??= stream.id;
      facts.replayed ??= stream.isRepeated;
      return { ...stream, read: (from, signal) => notedPages(stream.read(from, signal), facts) };
    },
  };
}

function noteRequest(facts: RequestFacts, { model, sequence, trace }: AnyRequest): void {
  facts.model = model.name;
  facts.version = model.version;
  facts.sequence = sequence && String(sequence.id.value);
  facts.trace = trace?.id;
}

/** Counts the records that a reader gets, and notes how their stream ended. */
export function notedPages(
  pages: AsyncIterable<readonly StreamRecord[]>,
  facts: RequestFacts | undefined,
): AsyncIterable<readonly StreamRecord[]> {
  return facts === undefined ? pages : countedPages(pages, facts);
}

async function* countedPages(
  pages: AsyncIterable<readonly StreamRecord[]>,
  facts: RequestFacts,
): AsyncGenerator<readonly StreamRecord[], void> {
  try {
    for await (const page of pages) {
      notePage(facts, page);
      yield page;
    }
  } catch (error) {
    facts.code = error instanceof InferenceError ? error.code : "internal";
    throw error;
  }
}

/** Notes records that a reader gets now. */
export function notePage(facts: RequestFacts | undefined, page: readonly StreamRecord[]): void {
  if (facts === undefined) return;
  facts.records = (facts.records ?? 0) + page.length;
  const last = page.at(-1);
  if (last?.final === true) noteEnd(facts, last);
}

function noteEnd(facts: RequestFacts, { json, note }: StreamRecord): void {
  facts.timings = readTimings(note);
  const { usage, error } = tokenRecord.parse(JSON.parse(json));
  if (error !== undefined) facts.code = error.code;
  if (usage === undefined) return;
  facts.tokensIn = (facts.tokensIn ?? 0) + usage.prompt_tokens;
  facts.tokensOut = (facts.tokensOut ?? 0) + usage.completion_tokens;
}
