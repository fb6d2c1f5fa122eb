/**
 * The receiver that a job names for its events: a webhook of the tenant, or a URL that only the job
 * and its deliveries have. Such a URL adds no webhook to the tenant's list and count.
 */
import { z } from "zod";
import { UnreadableError, type Webhook } from "./webhook.js";

const target = z.union([
  z.strictObject({ id: z.string() }),
  z.strictObject({
    url: z.string(),
    /** The secret, which `SecretBox` has sealed for the tenant and the id of the job. */
    secret: z.string(),
  }),
]);

export type Target = Readonly<z.infer<typeof target>>;

export function targetText(value: Target): string {
  return JSON.stringify(value);
}

/**
 * The inverse of `targetText`.
 * @throws UnreadableError for any other text; the message repeats no part of the text, because the
 * text holds a secret
 */
export function parseTarget(text: string): Target {
  try {
    return target.parse(JSON.parse(text));
  } catch {
    throw new UnreadableError("where a job's events go cannot be read: another version of Baton may have written it");
  }
}

/** Makes a webhook of a job's own URL, so that it signs like any webhook. */
export function webhookOfJob(tenant: string, job: string, { url, secret }: Extract<Target, { url: string }>): Webhook {
  return { id: job, tenant, url, events: [], enabled: true, createdAt: 0, secret };
}
