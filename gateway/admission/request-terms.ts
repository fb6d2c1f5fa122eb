/**
 * Reads the terms that mean the same in every protocol: the id of a sequence, and how long a
 * request may wait.
 */
import type { CorrelationId } from "#shared/contract/sequence.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { isUint64, unparsable } from "#shared/json/members.js";
import type { JsonValue } from "#shared/json/parse.js";

const maxIdBytes = 128;

/**
 * Checks the key under which a client may repeat its request.
 * @throws InferenceError
 */
export function checkIdempotencyKey(key: string): string {
  if (/^[\x20-\x7e]{1,255}$/.test(key)) return key;
  throw fixedError("invalid_argument", "idempotencyKey");
}

/**
 * Reads the id of a sequence: a uint64, or a string of at most 128 bytes.
 * @throws InferenceError
 */
export function readCorrelationId(value: JsonValue): CorrelationId {
  if (isUint64(value)) return { kind: "uint64", value: BigInt(value) };
  if (typeof value !== "string") throw unparsable("sequence_id", "string");
  if (Buffer.byteLength(value) > maxIdBytes) {
    throw new InferenceError("unsupported", `string correlation ID cannot be longer than ${maxIdBytes} characters`);
  }
  return { kind: "string", value };
}

/**
 * Reads the number of a step, counted from the sequence's START, which is 1.
 * @throws InferenceError
 */
export function readStepNumber(value: JsonValue): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 1) return value;
  throw new InferenceError("invalid_argument", "sequence_step must be an integer of at least 1");
}

/**
 * Refuses a number for a request without a sequence, or a number that a START cannot have.
 * @param step undefined if the request is in no sequence
 * @throws InferenceError
 */
export function checkStepNumber(number: number | undefined, step: { readonly start: boolean } | undefined): void {
  if (number === undefined) return;
  if (step === undefined) {
    throw new InferenceError("invalid_argument", "sequence_step is only for a request of a sequence");
  }
  if (step.start && number !== 1) {
    throw new InferenceError(
      "invalid_argument",
      `a request with the START flag is step 1 of its sequence, so its sequence_step cannot be ${number}`,
    );
  }
}

export interface DeadlineLimits {
  /** The deadline of a request that names none, in ms. */
  readonly defaultDeadlineMs: number;
  /** The longest deadline that a request may name, in ms. */
  readonly maxDeadlineMs: number;
}

/**
 * Reads the parameter `timeout`, in microseconds. 0 asks for the default. The result is rounded up
 * to whole milliseconds, so that a short time does not become none.
 * @throws InferenceError
 */
export function readDeadline(value: JsonValue, limits: DeadlineLimits): number {
  if (!isUint64(value)) throw unparsable("timeout", "unsigned-integer");
  const ms = Math.ceil(Number(value) / 1000);
  if (ms > limits.maxDeadlineMs) {
    throw new InferenceError(
      "invalid_argument",
      `timeout of ${value} microseconds is longer than the limit of ${limits.maxDeadlineMs * 1000}`,
    );
  }
  return ms === 0 ? limits.defaultDeadlineMs : ms;
}
