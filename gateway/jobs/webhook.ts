/** Reads the option `webhook` of a job: a receiver in addition to the tenant's webhooks. */
import { createHash } from "node:crypto";
import { InferenceError } from "#shared/errors.js";
import { isObject, withoutOthers } from "#shared/json/members.js";
import { jobEventTypes, type JobEventType } from "#shared/queue/pieces/job-events.js";
import type { JsonValue } from "#shared/json/parse.js";
import { askRedis } from "../admission/ask-redis.js";
import { preview } from "../generation/parameters.js";
import type { AddressRanges } from "../webhooks/addresses.js";
import { readEvents, readSecret, readUrl } from "../webhooks/read.js";
import { newSecret, type SecretBox } from "../webhooks/secrets.js";
import { targetText } from "../webhooks/target.js";
import { ownerOf } from "../webhooks/webhook.js";
import type { Webhooks } from "../webhooks/webhooks.js";

/** The webhook as the options of the job and its view have it, without the secret. */
export type JobWebhook = ({ readonly id: string } | { readonly url: string }) & {
  readonly events: readonly JobEventType[];
};

export interface GivenWebhook {
  readonly shown: JobWebhook;
  /** Only for a URL: the secret that the client has sent, or a new secret. */
  readonly secret: string;
  /**
   * A digest of the client's secret, so that a repeated submission with another secret is a
   * mismatch.
   */
  readonly digest: string;
}

export interface WebhookTerms {
  readonly webhooks: Webhooks;
  /** Ranges to which a webhook may lead although they are not public. */
  readonly allowed: AddressRanges;
}

/** The usual events: each way in which a job ends. */
const USUAL_EVENTS = jobEventTypes.filter((type) => type !== "job.started");

/** @throws InferenceError that names the fault; `url_not_allowed` if the URL is at fault */
export async function readJobWebhook(
  value: JsonValue,
  tenant: string,
  { webhooks, allowed }: WebhookTerms,
): Promise<GivenWebhook> {
  if (!isObject(value)) throw refused(`webhook must be an object with url or id, got ${preview(value)}`);
  const { id, url, events, secret } = withoutOthers(value, ["id", "url", "events", "secret"]);
  const wanted = events === undefined ? USUAL_EVENTS : readEvents(events, jobEventTypes);
  if ((id === undefined) === (url === undefined)) throw refused("webhook must have either url or id");
  if (url !== undefined) {
    const chosen = secret === undefined ? undefined : readSecret(secret);
    const digest = chosen === undefined ? "" : createHash("sha256").update(chosen).digest("base64url");
    return { shown: { url: await readUrl(url, allowed), events: wanted }, secret: chosen ?? newSecret(), digest };
  }
  if (secret !== undefined) throw refused("webhook.secret goes with a url; the webhook with this id has its own");
  const known = typeof id === "string" && (await askRedis(() => webhooks.find(tenant, id)));
  if (typeof id !== "string" || !known) throw refused(`there is no webhook ${preview(id)}`);
  return { shown: { id, events: wanted }, secret: "", digest: "" };
}

/**
 * The fields of the job's record for the webhook, which the scripts and the jobs process read.
 * @param job its id
 */
export function recordedWebhook(box: SecretBox, tenant: string, job: string, { shown, secret }: GivenWebhook) {
  const target =
    "id" in shown ? { id: shown.id } : { url: shown.url, secret: box.seal(secret, ownerOf({ tenant, id: job })) };
  return { tell: shown.events.join(" "), target: targetText(target) };
}

function refused(message: string): InferenceError {
  return new InferenceError("invalid_argument", message);
}
