/** The settings of webhooks that gateways and the jobs process have in common. */
import { z } from "zod";
import { parseRanges } from "./addresses.js";
import { parseKey } from "./secrets.js";

export const webhookSettings = {
  BATON_WEBHOOK_ALLOW: z
    .string()
    .default("")
    .refine((text) => parseRanges(text) !== undefined, "must be address ranges, as `10.0.0.0/8,fd00::/8`")
    .describe(
      "ranges of addresses, comma-separated as `10.0.0.0/8`, to which webhooks may lead although they are not " +
        "public; only into these may a webhook be `http://`",
    ),
  BATON_SECRETS_KEY: z
    .string()
    .optional()
    .refine((text) => text === undefined || parseKey(text) !== undefined, "must be 32 bytes in base64 or hexadecimal")
    .describe(
      "32 bytes, in base64 or hexadecimal, with which the secrets of webhooks are encrypted in Redis; the same in " +
        "every gateway and jobs process. Unset: they are not encrypted",
    ),
};
