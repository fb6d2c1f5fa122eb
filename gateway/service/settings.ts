/** The settings of the service: every environment variable with its unit, default and bounds. */
import { z } from "zod";
import { USAGE_DAYS } from "#shared/queue/admission/admit.js";
import { processSettings } from "#shared/metrics/settings.js";
import { parseWeights } from "../auth/owner/weights.js";
import { limitNames, parseLimits } from "../auth/owner/limits.js";
import { fileSettings } from "../files/settings.js";
import { subscriptionSettings } from "../subscriptions/settings.js";
import { webhookSettings } from "../webhooks/settings.js";

/** For gateways and for the jobs process. */
export const serviceSettings = processSettings.extend({
  ...webhookSettings,
  ...fileSettings,
  ...subscriptionSettings,
  BATON_TENANT_WEIGHTS: z
    .string()
    .default("")
    .refine(
      (text) => parseWeights(text) !== undefined,
      "must be tenants with whole numbers from 1 to 9999, as `a=1,b=2`",
    )
    .describe(
      "The shares of tenants while requests wait, such as `a=1,b=2`. A tenant that the setting does not name has 1.",
    ),
  BATON_DEFAULT_LIMITS: z
    .string()
    .default("{}")
    .refine((text) => parseLimits(text) !== undefined, `must be JSON with limits: ${limitNames("tenant").join(", ")}`)
    .describe(
      "The limits of tenants that have none themselves, as JSON: `requests_per_second`, `burst` for how many of them " +
        "at once, `tokens_per_minute`, `quota`, `concurrent_streams`, `open_readers`, `queued_requests`, `queued_bytes`, " +
        "`live_sequences`, `body_bytes`, `files`, `file_bytes`, `jobs`, `schedules`, `webhooks`, `batches` and `subscriptions`. The same " +
        "for gateways and jobs processes.",
    ),
  BATON_USAGE_DAYS: z.coerce
    .number()
    .int()
    .min(1)
    .max(3_650)
    .default(USAGE_DAYS)
    .describe("How many days Redis keeps the usage of clients. The same for gateways and jobs processes."),
  BATON_MAX_JSON_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(67_108_864)
    .describe("The most bytes of a JSON body, after decompression. A longer body gets 413."),
  BATON_MAX_BODY_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(268_435_456)
    .describe("The most bytes of a body with binary tensors. A longer body gets 413."),
  BATON_BODY_MEMORY_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(536_870_912)
    .describe(
      "The most bytes of memory for the bodies that a gateway receives and parses at a time. Further requests get " +
        "503. A parsed body that waits for a worker counts in the limits of the queue instead.",
    ),
  BATON_QUEUE_LIMIT: z.coerce
    .number()
    .int()
    .positive()
    .default(10_000)
    .describe("The most requests of a model that wait or run. Further requests for the model get 503."),
  BATON_QUEUE_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(268_435_456)
    .describe("The most bytes of a model's requests that wait or run. Further requests for the model get 503."),
  BATON_TOTAL_QUEUE_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(1_073_741_824)
    .describe(
      "The most bytes of all requests that wait or run. Beyond that requests get 503, and gateways are not ready.",
    ),
  BATON_TENANT_QUEUE_LIMIT: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .describe(
      "The most requests of a tenant, for all models, that wait or run. Further requests of the tenant get 429. 0: " +
        "tenants have no such limit.",
    ),
  BATON_TENANT_QUEUE_BYTES: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .describe(
      "The most bytes of a tenant's requests, for all models, that wait or run. Further requests of the tenant get " +
        "429. 0: tenants have no such limit.",
    ),
  BATON_SEQUENCE_BACKLOG: z.coerce
    .number()
    .int()
    .positive()
    .default(64)
    .describe("The most steps of a sequence that wait. Further steps get 429."),
  BATON_SEQUENCE_LIMIT: z.coerce
    .number()
    .int()
    .positive()
    .default(100_000)
    .describe("The most live sequences of a model. A step that would begin another sequence gets 429."),
  BATON_OUTCOME_TTL_MS: z.coerce
    .number()
    .int()
    .min(10_000)
    .default(60_000)
    .describe("How long, in ms, Baton keeps an outcome that its client has not fetched."),
  BATON_STREAM_TTL_MS: z.coerce
    .number()
    .int()
    .min(10_000)
    .default(600_000)
    .describe("How long, in ms, clients can read a stream after its end. After that readers get 410."),
  BATON_RESULT_TTL_MS: z.coerce
    .number()
    .int()
    .min(10_000)
    .default(3_600_000)
    .describe(
      "How long, in ms, Baton keeps the result of a request in the background, of a job, or under an " +
        "Idempotency-Key. After that clients get 410.",
    ),
  BATON_JOB_TTL_MS: z.coerce
    .number()
    .int()
    .min(10_000)
    .default(86_400_000)
    .describe("How long, in ms, Baton knows a job after its end. After that clients get 404."),
  BATON_RESULT_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(268_435_456)
    .describe(
      "The most bytes of kept results and of the bodies of failed jobs, all together. Beyond that Baton deletes " +
        "first the results and bodies that would expire first.",
    ),
  BATON_DELAYED_LIMIT: z.coerce
    .number()
    .int()
    .positive()
    .default(100_000)
    .describe(
      "The most jobs of a tenant that wait for their time or for another attempt. Further delayed jobs of the " +
        "tenant get 429.",
    ),
  BATON_DELAYED_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(536_870_912)
    .describe(
      "The most bytes of all jobs that wait for their time or for another attempt; each takes about 3 KiB beside " +
        "its body. Further delayed jobs get 503, and failed jobs get no further attempt.",
    ),
  BATON_RECONNECT_GRACE_MS: z.coerce
    .number()
    .int()
    .min(1_000)
    .default(30_000)
    .describe("How long, in ms, a stream runs without a reader. After that Baton cancels the request."),
  BATON_IDEMPOTENCY_TTL_MS: z.coerce
    .number()
    .int()
    .min(10_000)
    .default(86_400_000)
    .describe(
      "How long, in ms, Baton remembers an Idempotency-Key. After that a request under the same key runs again.",
    ),
});

export type ServiceConfig = z.infer<typeof serviceSettings>;

/** A rule about two settings together. */
export const holdsTwoBodies = {
  holds: (config: ServiceConfig): boolean =>
    config.BATON_BODY_MEMORY_BYTES >= 2 * Math.max(config.BATON_MAX_JSON_BYTES, config.BATON_MAX_BODY_BYTES),
  otherwise: { path: ["BATON_BODY_MEMORY_BYTES"], error: "must be at least twice the longest body" },
};
