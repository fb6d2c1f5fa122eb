/**
 * The settings of a gateway process: every environment variable with its unit, default and bounds.
 */
import { z } from "zod";
import { areHosts, originsFault } from "./http/browsers.js";
import { holdsTwoBodies, serviceSettings } from "./service/settings.js";
import { parseSettings } from "#shared/settings.js";

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

export const gatewaySettings = serviceSettings
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
