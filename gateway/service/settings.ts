/** The settings of the service: every environment variable with its unit, default and bounds. */
import { z } from "zod";
import { sharedSettings } from "#shared/settings.js";
import { parseWeights } from "../admission/weights.js";
import { fileSettings } from "../files/settings.js";
import { subscriptionSettings } from "../subscriptions/settings.js";
import { webhookSettings } from "../webhooks/settings.js";

/** For gateways and for the jobs process. */
export const serviceSettings = sharedSettings.extend({
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
    .describe("shares of tenants where requests have to wait, as `a=1,b=2`; 1 for any other"),
  BATON_MAX_JSON_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(67_108_864)
    .describe("longest JSON body, after decompression"),
  BATON_MAX_BODY_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(268_435_456)
    .describe("longest body with binary tensors"),
  BATON_BODY_MEMORY_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(536_870_912)
    .describe(
      "bytes of bodies received and parsed at a time before 503; " +
        "a parsed one that waits for a worker counts in the queue's limits instead",
    ),
  BATON_QUEUE_LIMIT: z.coerce
    .number()
    .int()
    .positive()
    .default(10_000)
    .describe("requests of a model that wait or run before 503"),
  BATON_QUEUE_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(268_435_456)
    .describe("bytes of a model's requests that wait or run before 503"),
  BATON_TOTAL_QUEUE_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(1_073_741_824)
    .describe("bytes of all requests that wait or run before 503, and before the gateway is not ready"),
  BATON_TENANT_QUEUE_LIMIT: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .describe("requests of a tenant that wait or run, of all models, before 429; 0: no limit of its own"),
  BATON_TENANT_QUEUE_BYTES: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .describe("bytes of a tenant's requests that wait or run, of all models, before 429; 0: no limit of its own"),
  BATON_SEQUENCE_BACKLOG: z.coerce
    .number()
    .int()
    .positive()
    .default(64)
    .describe("waiting steps per sequence before 429"),
  BATON_SEQUENCE_LIMIT: z.coerce
    .number()
    .int()
    .positive()
    .default(100_000)
    .describe("live sequences of a model before 429"),
  BATON_OUTCOME_TTL_MS: z.coerce
    .number()
    .int()
    .min(10_000)
    .default(60_000)
    .describe("how long an outcome that nobody fetched is kept"),
  BATON_STREAM_TTL_MS: z.coerce
    .number()
    .int()
    .min(10_000)
    .default(600_000)
    .describe("how long a stream can be read again after its end"),
  BATON_RESULT_TTL_MS: z.coerce
    .number()
    .int()
    .min(10_000)
    .default(3_600_000)
    .describe("how long the result of a request in the background, of a job, or under an Idempotency-Key, is kept"),
  BATON_JOB_TTL_MS: z.coerce
    .number()
    .int()
    .min(10_000)
    .default(86_400_000)
    .describe("how long a job is known after its end"),
  BATON_RESULT_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(268_435_456)
    .describe(
      "bytes of such results and of the bodies of failed jobs, all together; above it those go first that would go first anyway",
    ),
  BATON_DELAYED_LIMIT: z.coerce
    .number()
    .int()
    .positive()
    .default(100_000)
    .describe("jobs of a tenant that wait for their time, or for another attempt, before further delayed ones get 429"),
  BATON_DELAYED_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(536_870_912)
    .describe(
      "bytes of all such jobs, some 3 KiB of each beside its body, before further delayed ones get 503; " +
        "above it jobs that fail are not tried again",
    ),
  BATON_RECONNECT_GRACE_MS: z.coerce
    .number()
    .int()
    .min(1_000)
    .default(30_000)
    .describe("how long a stream runs on without a reader"),
  BATON_IDEMPOTENCY_TTL_MS: z.coerce
    .number()
    .int()
    .min(10_000)
    .default(86_400_000)
    .describe("how long an Idempotency-Key is remembered"),
});

export type ServiceConfig = z.infer<typeof serviceSettings>;

/** A rule about two settings together. */
export const holdsTwoBodies = {
  holds: (config: ServiceConfig): boolean =>
    config.BATON_BODY_MEMORY_BYTES >= 2 * Math.max(config.BATON_MAX_JSON_BYTES, config.BATON_MAX_BODY_BYTES),
  otherwise: { path: ["BATON_BODY_MEMORY_BYTES"], error: "must be at least twice the longest body" },
};
