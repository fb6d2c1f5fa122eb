/**
 * The settings of a gateway process: every environment variable with its unit, default and bounds.
 */
import { z } from "zod";
import { grpcSettings } from "./doors/grpc/settings.js";
import { authSettings } from "./auth/settings.js";
import { cacheSettings } from "./cache/settings.js";
import { parseRanges } from "./webhooks/addresses.js";
import { originsFault } from "#shared/listening/browsers.js";
import { holdsTwoBodies, serviceSettings } from "./service/settings.js";
import { flagSetting, parseSettings } from "#shared/settings.js";

const listeningSettings = {
  BATON_HOST: z.string().default("0.0.0.0").describe("The address on which the gateway listens."),
  BATON_HTTP_PORT: z.coerce
    .number()
    .int()
    .min(0)
    .max(65_535)
    .default(8000)
    .describe("The port for HTTP. 0: the system chooses a free port."),
  ...grpcSettings,
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
      "The header in which an authenticating proxy names the tenant. All clients must come through that proxy " +
        "(`BATON_TRUSTED_PROXIES`), and a request without the header gets 403. Empty: all clients are one tenant.",
    ),
  BATON_TRUSTED_PROXIES: z
    .string()
    .refine(
      (text) => parseRanges(text) !== undefined,
      "must be addresses or ranges such as 10.0.0.0/8, comma-separated",
    )
    .default("")
    .describe(
      "The addresses and ranges, comma-separated, of the proxies whose `X-Forwarded-For` and `BATON_TENANT_HEADER` " +
        "count. Empty: no proxy's `X-Forwarded-For` counts, and a gateway on loopback takes `BATON_TENANT_HEADER` " +
        "from every client.",
    ),
  BATON_SERVER_NAME: z
    .string()
    .min(1)
    .default("baton")
    .describe("The `name` in the server's metadata. Some clients of Triton insist on `triton`."),
  BATON_HEADER_FORWARD_PATTERN: z
    .string()
    .optional()
    .refine(
      (text) => text === undefined,
      "must be unset: only backends of one's own read headers that are forwarded to them, and Baton runs none",
    )
    .describe(
      "Triton's pattern of headers that a model gets as parameters. A gateway does not start with it: only backends of " +
        "one's own read such parameters, and Baton runs none.",
    ),
  BATON_CONSOLE: flagSetting("true").describe(
    "`true`: the gateway serves the console, a page for browsers, at `/console/`. The page needs no API key, and " +
      "asks its user for one to show anything. `false`: there is no such path.",
  ),
  BATON_METRICS_TENANTS: z.coerce
    .number()
    .int()
    .min(0)
    .max(1_000)
    .default(0)
    .describe(
      "The most tenants with metrics of their own, the first that send requests. Further tenants count as `_other` " +
        "together. 0: no metrics tell tenants apart.",
    ),
  BATON_HISTORY: flagSetting("true").describe(
    "`true`: this gateway takes turns with others to observe the queue of the whole fleet. The observing gateway shows " +
      "the queue among its metrics, and keeps the history of the last 30 minutes in Redis. `false`: this gateway never " +
      "observes.",
  ),
  BATON_MAX_UNREAD_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(536_870_912)
    .describe(
      "The most bytes of replies that wait for all clients together. Beyond that the gateway cuts the clients that " +
        "read nothing.",
    ),
  BATON_SOCKET_PARSER: flagSetting("true").describe(
    "`true`: the gateway reads usual `infer` requests with bodies of up to 64 KiB from the socket by itself. " +
      "`false`: node's HTTP server reads all requests, with the same answers, which costs the gateway more. The " +
      "setting is for the search for faults.",
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
  BATON_ACCESS_LOG: z
    .string()
    .default("off")
    .describe(
      "Where the gateway writes a line for each request: `stdout`, or the path of a file or a named pipe, which a " +
        "SIGHUP opens anew. `off`: the gateway writes no such lines. See [the access log](access-log.md).",
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

export const gatewaySettings = serviceSettings
  .extend({ ...listeningSettings, ...authSettings, ...cacheSettings })
  .refine(holdsTwoBodies.holds, holdsTwoBodies.otherwise);

export type GatewayConfig = z.infer<typeof gatewaySettings>;

/**
 * Reads the settings.
 * @throws Error naming every variable that is wrong
 */
export function gatewayConfig(env: NodeJS.ProcessEnv): GatewayConfig {
  return parseSettings(gatewaySettings, env);
}
