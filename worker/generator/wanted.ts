/** When a stream counts as unwanted: only while its gateways could have said otherwise. */
import { InferenceError } from "#shared/errors.js";
import type { Steadiness } from "../intake/steadiness.js";

/** Gateways that were cut off from Redis have all said by then which streams are read. */
const ATTENDED_AGAIN_MS = 3_000;

export function heedsWanted(steadiness: Steadiness): boolean {
  return steadiness.steadyFor(performance.now()) >= ATTENDED_AGAIN_MS;
}

export function nobodyReads(): InferenceError {
  return new InferenceError("cancelled", "nobody reads this stream any more");
}
