/**
 * The settings of a gateway process: every environment variable with its unit, default and bounds.
 */
import { z } from "zod";
import { areHosts, originsFault } from "./http/browsers.js";
import { parseWeights } from "./http/tenant.js";
import { fileSettings } from "./files/settings.js";
import { subscriptionSettings } from "./subscriptions/settings.js";
import { webhookSettings } from "./webhooks/settings.js";
import { parseSettings, sharedSettings } from "#shared/settings.js";

/** Settings of admission, for gateways and for the jobs process. */
export const admissionSettings = sharedSettings.extend({
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

const listeningSettings = {
  BATON_HOST: z.string().default("0.0.0.0").describe("address to listen on"),
  BATON_HTTP_PORT: z.coerce.number().int().min(0).max(65_535).default(8000).describe("HTTP port; 0 takes a free one"),
  BATON_ALLOWED_HOSTS: z
    .string()
    .refine(areHosts, "must be names without ports, comma-separated")
    .default("")
    .describe(
      "names, comma-separated, by which this gateway may be asked; `.example.com` is all below it, `*` any. " +
        "Addresses, names without a dot, and `.localhost`, `.local`, `.internal`, `.svc`, " +
        "`.home.arpa`, `.lan` need no mention",
    ),
  BATON_ALLOWED_ORIGINS: z
    .string()
    .default("loopback")
    .superRefine((text, context) => {
      const message = originsFault(text);
      if (message !== undefined) context.addIssue({ code: "custom", message });
    })
    .describe(
      "whose pages may use this gateway from a browser: origins, comma-separated; " +
        "`loopback`: all of the same machine, `*`: any, `none`: no pages",
    ),
  BATON_TENANT_HEADER: z
    .string()
    .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]*$/, "must be the name of a header")
    .default("")
    .describe(
      "header that says whose a request is, set by an authenticating proxy through which all clients come; " +
        "empty: all are one tenant. Where it is set, a request without it is refused",
    ),
  BATON_SERVER_NAME: z
    .string()
    .min(1)
    .default("baton")
    .describe("`name` in the server's metadata; some of Triton's own clients insist on `triton`"),
  BATON_MAX_UNREAD_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(536_870_912)
    .describe("replies that wait for all clients together; above it those that read nothing are cut"),
  BATON_UPLOAD_MS: z.coerce
    .number()
    .int()
    .min(120_000)
    .max(86_400_000)
    .default(300_000)
    .describe("how long a file may take to arrive; any other request may take 120 s"),
  BATON_LINGER_MS: z.coerce
    .number()
    .int()
    .min(0)
    .default(1_000)
    .describe("how long a stopping gateway, no longer ready, still takes requests"),
  BATON_DRAIN_MS: z.coerce
    .number()
    .int()
    .positive()
    .default(25_000)
    .describe("longest wait for open requests at shutdown"),
};

export type AdmissionConfig = z.infer<typeof admissionSettings>;

/** A rule about two settings together. */
export const holdsTwoBodies = {
  holds: (config: AdmissionConfig): boolean =>
    config.BATON_BODY_MEMORY_BYTES >= 2 * Math.max(config.BATON_MAX_JSON_BYTES, config.BATON_MAX_BODY_BYTES),
  otherwise: { path: ["BATON_BODY_MEMORY_BYTES"], error: "must be at least twice the longest body" },
};

export const gatewaySettings = admissionSettings
  .extend(listeningSettings)
  .refine(holdsTwoBodies.holds, holdsTwoBodies.otherwise);

export type GatewayConfig = z.infer<typeof gatewaySettings>;

/**
 * Reads the settings.
 * @throws Error naming every variable that is wrong
 */
export function gatewayConfig(env: NodeJS.ProcessEnv): GatewayConfig {
  return parseSettings(gatewaySettings, env);
}
