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
      "seed of the key of the account in NATS that readers are in, or the path of a file with it: with it gateways " +
        "make the credentials of subscriptions. Unset: there are no subscriptions",
    ),
  BATON_NATS_PUBLIC_URLS: z
    .string()
    .default("")
    .refine(areUrls, "must be URLs, comma-separated, that begin with nats://, tls://, ws:// or wss://")
    .describe(
      "where clients reach NATS, comma-separated: `nats://host:port,wss://host`; empty: as BATON_NATS_URL says",
    ),
  BATON_CAPTURE_BYTES: z.coerce
    .number()
    .int()
    .min(1_048_576)
    .default(268_435_456)
    .describe("most bytes of the records that JetStream keeps; the oldest go first"),
  BATON_SUBSCRIPTION_LIMIT: z.coerce
    .number()
    .int()
    .positive()
    .default(100)
    .describe(
      "consumers of JetStream that a tenant may have before 429; all tenants together may have ten times as many",
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
