/** The settings of the response cache. */
import { z } from "zod";

export const cacheSettings = {
  BATON_CACHE_BYTES: z.coerce
    .number()
    .int()
    .min(0)
    .default(67_108_864)
    .describe(
      "The most bytes that Redis keeps of the answers of all models with `response_cache`. Beyond that Baton drops " +
        "first the answers that were not used for the longest time. An answer of more than an eighth is not kept. In a " +
        "Cluster each bucket has an equal part. 0: every request runs.",
    ),
  BATON_CACHE_TTL_MS: z.coerce
    .number()
    .int()
    .min(100)
    .max(86_400_000)
    .default(600_000)
    .describe("How long, in ms, Baton answers a request with the answer of an equal request before."),
};
