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
    .describe(
      "The shares of tenants while requests wait, such as `a=1,b=2`. A tenant that the setting does not name has 1.",
    ),
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

const listeningSettings = {
  BATON_HOST: z.string().default("0.0.0.0").describe("The address on which the gateway listens."),
  BATON_HTTP_PORT: z.coerce
    .number()
    .int()
    .min(0)
    .max(65_535)
    .default(8000)
    .describe("The port for HTTP. 0: the system chooses a free port."),
  BATON_ALLOWED_HOSTS: z
    .string()
    .refine(areHosts, "must be names without ports, comma-separated")
    .default("")
    .describe(
      "The names, comma-separated, by which clients may address this gateway. `.example.com` allows all names " +
        "below it, and `*` any name. A request under another name gets 403. Addresses, names without a dot, and " +
        "names that end in `.localhost`, `.local`, `.internal`, `.svc`, `.home.arpa` or `.lan` are always allowed.",
    ),
  BATON_ALLOWED_ORIGINS: z
    .string()
    .default("loopback")
    .superRefine((text, context) => {
      const message = originsFault(text);
      if (message !== undefined) context.addIssue({ code: "custom", message });
    })
    .describe(
      "The origins, comma-separated, whose pages may use this gateway from a browser. `loopback`: all pages of the " +
        "same machine; `*`: any page; `none`: no page. Other pages get 403.",
    ),
  BATON_TENANT_HEADER: z
    .string()
    .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]*$/, "must be the name of a header")
    .default("")
    .describe(
      "The header in which an authenticating proxy names the tenant. All clients must come through that proxy, and " +
        "a request without the header gets 403. Empty: all clients are one tenant.",
    ),
  BATON_SERVER_NAME: z
    .string()
    .min(1)
    .default("baton")
    .describe("The `name` in the server's metadata. Some clients of Triton insist on `triton`."),
  BATON_MAX_UNREAD_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(536_870_912)
    .describe(
      "The most bytes of replies that wait for all clients together. Beyond that the gateway cuts the clients that " +
        "read nothing.",
    ),
  BATON_UPLOAD_MS: z.coerce
    .number()
    .int()
    .min(120_000)
    .max(86_400_000)
    .default(300_000)
    .describe(
      "How long, in ms, the upload of a file may take; any other request may take 120 s. A slower request gets 408.",
    ),
  BATON_LINGER_MS: z.coerce
    .number()
    .int()
    .min(0)
    .default(1_000)
    .describe("How long, in ms, a stopping gateway still accepts requests, while its readiness check already fails."),
  BATON_DRAIN_MS: z.coerce
    .number()
    .int()
    .positive()
    .default(25_000)
    .describe(
      "How long, in ms, a stopping gateway waits for its open requests. After that it closes their connections.",
    ),
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
