/**
 * Reads the records of an answer, in pages or one by one. Throws an error if the last record says
 * that the generation failed.
 */
import { tokenRecord, type TokenRecord } from "#shared/contract/generation.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import type { OpenStream, StreamRecord } from "../stream/open-stream.js";

/** Records that arrived together, unparsed. */
export interface AnswerPage {
  /** The index of the prompt that the records answer. */
  readonly prompt: number;
  readonly records: readonly StreamRecord[];
}

/**
 * Yields the pages of a generation until its final record. Ends early when `signal` aborts.
 * @param prompt the index of its prompt, which each page carries
 * @throws InferenceError as `OpenStream.read` does, and if the records end before the final one
 */
export async function* answerPages(
  stream: OpenStream,
  signal: AbortSignal,
  prompt = 0,
): AsyncGenerator<AnswerPage, void> {
  for await (const records of stream.read(0, signal)) {
    yield { prompt, records };
    if (records.at(-1)?.final === true) return;
  }
  if (!signal.aborted) throw fixedError("request_lost", "recordsEnd");
}

/**
 * Yields the parsed records of a generation until the final one. Ends early when `signal` aborts.
 * @throws InferenceError as `answerPages` and `readRecord` do
 */
export async function* answerRecords(stream: OpenStream, signal: AbortSignal): AsyncGenerator<TokenRecord, void> {
  for await (const { records } of answerPages(stream, signal)) for (const record of records) yield readRecord(record);
}

/**
 * @throws InferenceError if the record says that the generation failed, expired or was cancelled
 */
export function readRecord({ json, plainText }: StreamRecord): TokenRecord {
  const value: unknown = JSON.parse(json);
  // `stream/records.ts` matched the whole of such a record, so there is no need for a schema.
  if (plainText !== undefined) return value as TokenRecord;
  const record = tokenRecord.parse(value);
  const failure = failureOf(record);
  if (failure !== undefined) throw failure;
  return record;
}

function failureOf({ reason, error }: TokenRecord): InferenceError | undefined {
  if (error !== undefined) return new InferenceError(error.code, error.message);
  switch (reason) {
    case "cancelled":
      return fixedError("cancelled", "byClient");
    case "expired":
      return fixedError("expired", "unfinished");
    case "error":
      return fixedError("internal", "usual");
    case "finished":
    case undefined:
      return undefined;
  }
}
