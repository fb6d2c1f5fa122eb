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
      "Ranges of private addresses, comma-separated such as `10.0.0.0/8`, to which webhooks may lead. Only " +
        "webhooks into these ranges may be `http://`. A webhook to any other address that is not public gets 400.",
    ),
  BATON_SECRETS_KEY_FILE: z
    .string()
    .optional()
    .describe("The path of the file whose first line is `BATON_SECRETS_KEY`, in place of that setting."),
  BATON_SECRETS_KEY: z
    .string()
    .optional()
    .refine((text) => text === undefined || parseKey(text) !== undefined, "must be 32 bytes in base64 or hexadecimal")
    .describe(
      "The key, 32 bytes in base64 or hexadecimal, that encrypts the secrets of webhooks in Redis. All gateways " +
        "and jobs processes need the same key. Unset: the secrets lie in Redis as plain text.",
    ),
};
