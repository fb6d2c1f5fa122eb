/** What a webhook is: as it lies in Redis, and as its tenant reads it, without its secret. */
import { z } from "zod";
import { eventTypes, type EventType } from "#shared/queue/pieces/events.js";
import { SealedError, type SecretBox } from "./secrets.js";

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

/** Thrown for what this version cannot read. A newer one beside it may have made it. */
export class UnreadableError extends Error {
  override readonly name = "UnreadableError";
}

/**
 * The inverse of `webhookText`.
 * @throws UnreadableError for what is none; it repeats nothing of it, since there is a secret in it
 */
export function parseWebhook(text: string): Webhook {
  try {
    return webhook.parse(JSON.parse(text));
  } catch {
    throw new UnreadableError("a webhook cannot be read: another version of Baton may have made it");
  }
}

/** What a secret belongs to, for `SecretBox`. */
export function ownerOf({ tenant, id }: Pick<Webhook, "tenant" | "id">): string {
  return `${tenant}:${id}`;
}

/**
 * The secrets that sign now, the newest first. One that was replaced signs no longer where it
 * cannot be opened: a rotation is the way out when BATON_SECRETS_KEY was changed.
 * @throws SealedError where the newest cannot be opened
 */
export function secretsOf(one: Webhook, box: SecretBox, now: number): string[] {
  const newest = box.open(one.secret, ownerOf(one));
  const { previous } = one;
  if (previous === undefined || previous.until <= now) return [newest];
  try {
    return [newest, box.open(previous.secret, ownerOf(one))];
  } catch (error) {
    if (!(error instanceof SealedError)) throw error;
    return [newest];
  }
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
