/** What a webhook is: as it lies in Redis, and as its tenant reads it, without its secret. */
import { z } from "zod";
import { eventTypes, type EventType } from "#shared/queue/events.js";
import type { SecretBox } from "./secrets.js";

const webhook = z.strictObject({
  id: z.string(),
  tenant: z.string(),
  url: z.string(),
  events: z.array(z.enum(eventTypes)),
  enabled: z.boolean(),
  /** Why it is not enabled, where its receiver has said so: it answered 410. */
  disabledReason: z.literal("gone").optional(),
  createdAt: z.number(),
  /** As `SecretBox` seals it. */
  secret: z.string(),
  /** The one before, with which is signed, too, until the overlap of a rotation ends. */
  previous: z.strictObject({ secret: z.string(), until: z.number() }).optional(),
});

export type Webhook = Readonly<z.infer<typeof webhook>>;

export function webhookText(value: Webhook): string {
  return JSON.stringify(value);
}

/**
 * The inverse of `webhookText`.
 * @throws Error for what is none
 */
export function parseWebhook(text: string): Webhook {
  return webhook.parse(JSON.parse(text));
}

/** What a secret belongs to, for `SecretBox`. */
export function ownerOf({ tenant, id }: Pick<Webhook, "tenant" | "id">): string {
  return `${tenant}:${id}`;
}

/**
 * The secrets that sign now, the newest first.
 * @throws SealedError where one cannot be opened
 */
export function secretsOf(one: Webhook, box: SecretBox, now: number): string[] {
  const { previous } = one;
  const sealed = previous !== undefined && previous.until > now ? [one.secret, previous.secret] : [one.secret];
  return sealed.map((secret) => box.open(secret, ownerOf(one)));
}

/** @param secret only where it is shown for the one time */
export function viewOf({ id, url, events, enabled, disabledReason, createdAt, previous }: Webhook, secret?: string) {
  const overlapsUntil = previous !== undefined && previous.until > Date.now() ? previous.until : undefined;
  return {
    id,
    object: "webhook",
    url,
    events,
    enabled,
    ...(disabledReason !== undefined && { disabled_reason: disabledReason }),
    created_at: new Date(createdAt).toISOString(),
    ...(secret !== undefined && { secret }),
    ...(overlapsUntil !== undefined && { previous_secret_until: new Date(overlapsUntil).toISOString() }),
  };
}

/** The events that a tenant's webhooks want, together. */
export function wantedBy(webhooks: readonly Webhook[]): EventType[] {
  const enabled = webhooks.filter((one) => one.enabled);
  return eventTypes.filter((type) => enabled.some(({ events }) => events.includes(type)));
}
