/** The records of a stream, read and checked; what a failed generation's last record says becomes an error. */
import { tokenRecord, type TokenRecord } from "#shared/contract/generation.js";
import { InferenceError } from "#shared/errors.js";
import type { OpenStream } from "../inference.js";

/**
 * Ends early, without a final record, when `signal` aborts.
 * @throws InferenceError as `OpenStream.read`, and where the generation ended in anything but its own end
 */
export async function* tokenRecords(stream: OpenStream, signal: AbortSignal): AsyncGenerator<TokenRecord, void> {
  for await (const { bytes } of stream.read(0, signal)) {
    const record = tokenRecord.parse(JSON.parse(bytes.toString("utf8")));
    const failure = failureOf(record);
    if (failure !== undefined) throw failure;
    yield record;
    if (record.final === true) return;
  }
  if (!signal.aborted)
    throw new InferenceError("request_lost", "the records of this request end before its answer does");
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
