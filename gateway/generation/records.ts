/** The records of an answer, as many at a time as are there; and one record, read. What a failed generation's last record says becomes an error. */
import { tokenRecord, type TokenRecord } from "#shared/contract/generation.js";
import { InferenceError } from "#shared/errors.js";
import type { OpenStream, StreamRecord } from "../inference.js";

export interface AnswerPage {
  /** Which of an answer's prompts they are about. */
  readonly prompt: number;
  readonly records: readonly StreamRecord[];
}

/**
 * Ends early, without a final record, when `signal` aborts.
 * @throws InferenceError as `OpenStream.read`, and where they end before the final one
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
  if (!signal.aborted)
    throw new InferenceError("request_lost", "the records of this request end before its answer does");
}

/** The same, read, one after the other. @throws InferenceError also where the generation ended in anything but its own end */
export async function* answerRecords(stream: OpenStream, signal: AbortSignal): AsyncGenerator<TokenRecord, void> {
  for await (const { records } of answerPages(stream, signal)) for (const record of records) yield readRecord(record);
}

/** @throws InferenceError where it says that the generation ended in anything but its own end */
export function readRecord({ json, plainText }: StreamRecord): TokenRecord {
  const value: unknown = JSON.parse(json);
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
      return new InferenceError("cancelled", "the request was cancelled");
    case "expired":
      return new InferenceError("expired", "the request's deadline passed before it was finished");
    case "error":
      return new InferenceError("internal", "internal error");
    case "finished":
    case undefined:
      return undefined;
  }
}
