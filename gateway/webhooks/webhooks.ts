/**
 * Reads, makes, changes and removes the webhooks of a tenant. After each change it tells every
 * bucket's scripts which events the tenant wants now.
 */
import type { Logger } from "pino";
import { fixedError, InferenceError } from "#shared/errors.js";
import { noteWanted, readTold } from "#shared/queue/webhooks/note-wanted.js";
import { readRevisions, readWebhook, readWebhooks } from "#shared/queue/webhooks/webhooks.js";
import { writeWebhook } from "#shared/queue/webhooks/write-webhook.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { tooManyOf } from "../admission/budget.js";
import { parseWebhook, wantedBy, webhookText, type Webhook } from "./webhook.js";

/** Most webhooks of a tenant that has no limit of its own. */
const MOST_WEBHOOKS = 100;
/** Most attempts at a change that other changes overtake. */
const MOST_TRIES = 10;

export interface WebhooksSettings {
  readonly redis: RedisClient;
  readonly buckets: number;
}

export class Webhooks {
  readonly #settings: WebhooksSettings;
  /** The numbers of all buckets. */
  readonly #buckets: readonly number[];

  constructor(settings: WebhooksSettings) {
    this.#settings = settings;
    this.#buckets = Array.from({ length: settings.buckets }, (_, bucket) => bucket);
  }

  /** Lists the webhooks, the oldest first. */
  async list(tenant: string): Promise<Webhook[]> {
    const webhooks = (await readWebhooks(this.#settings.redis, tenant)).map(parseWebhook);
    return webhooks.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
  }

  /** @returns undefined if the tenant has no such webhook */
  async find(tenant: string, id: string): Promise<Webhook | undefined> {
    const text = await readWebhook(this.#settings.redis, tenant, id);
    return text === undefined ? undefined : parseWebhook(text);
  }

  /**
   * @param most webhooks that the tenant may have; absent: the usual number
   * @throws InferenceError `webhook_limit`
   */
  async make(webhook: Webhook, most = MOST_WEBHOOKS): Promise<void> {
    const said = await this.#write(webhook, undefined, webhookText(webhook), most);
    if (said !== "full") return;
    const why = `there are ${most} webhooks already, and no more are allowed`;
    throw new InferenceError("webhook_limit", why, tooManyOf("webhooks"));
  }

  /**
   * @param change makes the new webhook; undefined removes the webhook
   * @returns the webhook after the change
   * @throws InferenceError `unknown_webhook`
   */
  async change(
    tenant: string,
    id: string,
    change: (webhook: Webhook) => Webhook | undefined,
  ): Promise<Webhook | undefined> {
    for (let i = 0; i < MOST_TRIES; i++) {
      const from = await readWebhook(this.#settings.redis, tenant, id);
      if (from === undefined) throw fixedError("unknown_webhook", "usual");
      const to = change(parseWebhook(from));
      const said = await this.#write({ tenant, id }, from, to && webhookText(to));
      if (said === "written") return to;
    }
    throw fixedError("outcome_unknown", "change");
  }

  /**
   * Tells the buckets which events tenants want, if a bucket does not have the newest revision: a
   * process may have died between the two steps of a change, and Redis may have lost a step. The
   * cost grows with the number of buckets, and with the number of tenants of which a bucket has an
   * old revision.
   */
  async tellAll(log: Logger): Promise<void> {
    const { redis } = this.#settings;
    const told = await Promise.all(this.#buckets.map((bucket) => readTold(redis, bucket)));
    for (const [tenant, revision] of await readRevisions(redis)) {
      const stale = this.#buckets.filter((bucket) => told[bucket]?.get(tenant) !== revision);
      if (stale.length === 0) continue;
      try {
        await this.#tell(tenant, revision, await readWebhooks(redis, tenant), stale);
      } catch (error) {
        log.warn({ tenant, error: String(error) }, "the events that a tenant wants cannot be told");
      }
    }
  }

  /** @param most counts for a new webhook only */
  async #write(webhook: Pick<Webhook, "tenant" | "id">, from: string | undefined, to: string | undefined, most = 0) {
    const written = await writeWebhook(this.#settings.redis, webhook, from, to, most);
    if (written.said === "written") await this.#tell(webhook.tenant, written.revision, written.webhooks);
    return written.said;
  }

  /** @param buckets the buckets to update; by default all */
  async #tell(tenant: string, revision: number, webhooks: readonly string[], buckets = this.#buckets): Promise<void> {
    const events = wantedBy(webhooks.map(parseWebhook));
    await noteWanted(this.#settings.redis, buckets, { tenant, revision, events });
  }
}
