/** The record of a webhook in Redis, and its view for the tenant, without the secret. */
import { z } from "zod";
import { eventTypes, type EventType } from "#shared/queue/pieces/events.js";
import { SealedError, type SecretBox } from "./secrets.js";

const webhook = z.strictObject({
  id: z.string(),
  tenant: z.string(),
  url: z.string(),
  events: z.array(z.enum(eventTypes)),
  enabled: z.boolean(),
  /** Why Baton has disabled the webhook: the receiver has answered 410. */
  disabledReason: z.literal("gone").optional(),
  createdAt: z.number(),
  /** The secret, which `SecretBox` has sealed. */
  secret: z.string(),
  /** The previous secret, which also signs until the overlap of a rotation ends. */
  previous: z.strictObject({ secret: z.string(), until: z.number() }).optional(),
});

export type Webhook = Readonly<z.infer<typeof webhook>>;

export function webhookText(value: Webhook): string {
  return JSON.stringify(value);
}

/** Thrown for a text that this version cannot read. A newer version may have written the text. */
export class UnreadableError extends Error {
  override readonly name = "UnreadableError";
}

/**
 * The inverse of `webhookText`.
 * @throws UnreadableError for any other text; the message repeats no part of the text, because the
 * text holds a secret
 */
export function parseWebhook(text: string): Webhook {
  try {
    return webhook.parse(JSON.parse(text));
  } catch {
    throw new UnreadableError("a webhook cannot be read: another version of Baton may have made it");
  }
}

/** The name of a secret's owner, for `SecretBox`. */
export function ownerOf({ tenant, id }: Pick<Webhook, "tenant" | "id">): string {
  return `${tenant}:${id}`;
}

/**
 * The secrets that sign now, the newest first. Leaves out a previous secret that this process
 * cannot open, so that a rotation helps after a change of BATON_SECRETS_KEY.
 * @throws SealedError if this process cannot open the newest secret
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

/** @param secret only if this is the one view that shows the secret */
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

/** The events that at least one enabled webhook of the tenant wants. */
export function wantedBy(webhooks: readonly Webhook[]): EventType[] {
  const enabled = webhooks.filter((one) => one.enabled);
  return eventTypes.filter((type) => enabled.some(({ events }) => events.includes(type)));
}
