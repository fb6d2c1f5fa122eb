/** What a run of a request took, for the usage of the key that sent the request. */
import { usageKeyOf } from "#shared/contract/usage.js";
import { spent } from "#shared/records/usage.js";
import type { Held } from "./holdings.js";

/**
 * @param ranMs the request's share of the model's time, in ms
 * @param bytesOut of the outcome, or of the records of the stream
 * @returns undefined if nobody counts the usage of the request
 */
export function spentOf({ request }: Pick<Held, "request">, ranMs: number, bytesOut: number): string | undefined {
  const key = usageKeyOf(request.meta);
  return key === undefined ? undefined : spent.write({ key, computeUs: Math.round(ranMs * 1_000), bytesOut });
}
