/** The settings of subscriptions. */
import { z } from "zod";
import { isAccountSeed } from "./credentials.js";

export const subscriptionSettings = {
  BATON_NATS_SIGNING_SEED: z
    .string()
    .optional()
    .refine(
      (text) => text === undefined || isAccountSeed(text),
      "must be the seed of an account's key, as `SA…`, or a file with it",
    )
    .describe(
      "The seed of the key of the readers' account in NATS, or the path of a file with the seed. Gateways sign the " +
        "credentials of subscriptions with this key. Unset: requests for subscriptions get 501.",
    ),
  BATON_NATS_PUBLIC_URLS: z
    .string()
    .default("")
    .refine(areUrls, "must be URLs, comma-separated, that begin with nats://, tls://, ws:// or wss://")
    .describe(
      "The addresses of NATS for clients, comma-separated: `nats://host:port,wss://host`. Empty: clients get " +
        "BATON_NATS_URL.",
    ),
  BATON_CAPTURE_BYTES: z.coerce
    .number()
    .int()
    .min(1_048_576)
    .default(268_435_456)
    .describe("The most bytes of records in JetStream. Beyond that JetStream deletes the oldest records."),
  BATON_SUBSCRIPTION_MAX_MS: z.coerce
    .number()
    .int()
    .min(1_000)
    .max(3_600_000)
    .default(300_000)
    .describe(
      "How long, in ms, credentials for NATS are valid at most if their client has an API key, because revoking " +
        "the key does not end them.",
    ),
  BATON_SUBSCRIPTION_LIMIT: z.coerce
    .number()
    .int()
    .positive()
    .default(100)
    .describe(
      "The most JetStream consumers of a tenant; all tenants together may have ten times as many. Further " +
        "subscriptions get 429.",
    ),
};

/** The addresses of a comma-separated list. */
export function publicUrls(text: string): string[] {
  return text
    .split(",")
    .map((url) => url.trim())
    .filter((url) => url !== "");
}

function areUrls(text: string): boolean {
  return publicUrls(text).every((url) => /^(nats|tls|wss?):\/\/[^@]+$/.test(url) && URL.canParse(url));
}
