/** What the runs of a request took, for the usage of the key that sent the request. */
import { usageKeyOf } from "#shared/contract/usage.js";
import { spent } from "#shared/records/usage.js";
import type { Held } from "./holdings.js";

/**
 * @param ranMs the request's share of the model's time in its last run, in ms
 * @param bytesOut of the outcome, of the last answer, or of the records of the stream
 * @returns undefined if nobody counts the usage of the request
 */
export function spentOf(
  { request, before }: Pick<Held, "request" | "before">,
  ranMs: number,
  bytesOut: number,
): string | undefined {
  const key = usageKeyOf(request.meta);
  if (key === undefined) return undefined;
  const computeUs = Math.round((before.shareMs + ranMs) * 1_000);
  return spent.write({ key, computeUs, bytesOut: before.bytes + bytesOut });
}
