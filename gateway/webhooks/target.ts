/**
 * Where the events of one job go by its own wish: to a webhook of its tenant, or to a URL that is
 * kept with the job and its deliveries alone. Of such a URL there is no webhook that is listed or
 * counted, however many jobs have one.
 */
import { z } from "zod";
import { UnreadableError, type Webhook } from "./webhook.js";

const target = z.union([
  z.strictObject({ id: z.string() }),
  z.strictObject({
    url: z.string(),
    /** As `SecretBox` seals it, for the tenant and the id of the job. */
    secret: z.string(),
  }),
]);

export type Target = Readonly<z.infer<typeof target>>;

export function targetText(value: Target): string {
  return JSON.stringify(value);
}

/**
 * The inverse of `targetText`.
 * @throws UnreadableError for what is none; it repeats nothing of it, since there is a secret in it
 */
export function parseTarget(text: string): Target {
  try {
    return target.parse(JSON.parse(text));
  } catch {
    throw new UnreadableError("where a job's events go cannot be read: another version of Baton may have written it");
  }
}

/** A URL of a job's own as if it were a webhook: it signs alike, and nothing of it changes. */
export function webhookOfJob(tenant: string, job: string, { url, secret }: Extract<Target, { url: string }>): Webhook {
  return { id: job, tenant, url, events: [], enabled: true, createdAt: 0, secret };
}
