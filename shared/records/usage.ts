/** The records of what clients have used. */
import { digits, number, record, text } from "./record.js";

/**
 * What a key has used of a model in a day: a field of the hash `usage:…:<tenant>:<day>`, by key and
 * model.
 */
export const usage = record(" ", {
  /** Admissions, repeats under an Idempotency-Key included. */
  requests: number(),
  /** Steps of sequences that took effect. */
  steps: number(),
  /** Tokens of prompts. */
  tokensIn: number(),
  /** Tokens of answers. */
  tokensOut: number(),
  /** µs of models' time: of each run a request's share, by rows. */
  computeUs: number(),
  /** Bytes of admitted requests. */
  bytesIn: number(),
  /** Bytes of outcomes, and of the records that the last worker of a stream made. */
  bytesOut: number(),
  /** Requests that a limit refused. */
  refused: number(),
});

/** A key and a model: the name of the field. */
export const usagePair = record("|", {
  /** Id of the key, or `-` for work that no client sends. */
  key: text(),
  model: text(),
});

/** What a worker's run of a request took, for the script that writes the outcome. */
export const spent = record("|", {
  /** Id of the key that sent the request, or `-` for work that no client sends. */
  key: text(),
  /** µs of the model's time. */
  computeUs: digits(),
  /** Bytes of the outcome, or of the records of its stream. */
  bytesOut: digits(),
});

/**
 * What an owner has used in a day and in its month: a field of the hash `spent:…:<month>`, by the
 * owner's name. Quotas compare with it.
 */
export const taken = record(" ", {
  /** The UTC day, such as 2026-11-28. */
  day: text(),
  dayRequests: number(),
  dayTokens: number(),
  dayComputeUs: number(),
  requests: number(),
  tokens: number(),
  computeUs: number(),
});
