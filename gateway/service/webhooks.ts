/** The operations on the webhooks of a tenant. */
import { randomBytes } from "node:crypto";
import { fixedError, InferenceError } from "#shared/errors.js";
import type { JsonValue } from "#shared/json/parse.js";
import { webhookKeys } from "#shared/queue/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { askRedis, changeInRedis } from "../admission/ask-redis.js";
import type { AddressRanges } from "../webhooks/addresses.js";
import { readUrl } from "../webhooks/read.js";
import { newSecret, type SecretBox } from "../webhooks/secrets.js";
import { ownerOf, viewOf, type Webhook } from "../webhooks/webhook.js";
import type { Webhooks } from "../webhooks/webhooks.js";
import type { Caller } from "./caller.js";
import { unknownPlace, type Page, type PageTerms } from "./page.js";
import { nameOf, once } from "./repeated/once.js";

export interface WebhookServiceSettings {
  readonly redis: RedisClient;
  readonly webhooks: Webhooks;
  /** Ranges to which a webhook may lead although they are not public. */
  readonly allowed: AddressRanges;
  readonly box: SecretBox;
}

/** Events that a client asks for. */
type Events = Webhook["events"];
export type WebhookView = ReturnType<typeof viewOf>;

/** A webhook that a client asks for. */
export interface NewWebhook {
  readonly events: Events;
  readonly url: JsonValue;
  readonly secret?: string | undefined;
}

/** The answer to a call that a client may send again under its Idempotency-Key. */
export interface Repeatable {
  readonly webhook: WebhookView;
  readonly isReplayed: boolean;
}

/** The longest time for which two secrets sign. */
export const MOST_OVERLAP_MS = 30 * 86_400_000;
const ID_BYTES = 16;

export class WebhookService {
  readonly #settings: WebhookServiceSettings;

  constructor(settings: WebhookServiceSettings) {
    this.#settings = settings;
  }

  /**
   * Lists the webhooks, the newest first.
   * @throws InferenceError
   */
  async list({ tenant }: Caller, { limit, after }: PageTerms): Promise<Page<WebhookView>> {
    const all = (await askRedis(() => this.#settings.webhooks.list(tenant))).reverse();
    const from = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
    if (after !== undefined && from === 0) throw unknownPlace();
    const page = all.slice(from, from + limit);
    return { data: page.map((one) => viewOf(one)), hasMore: from + limit < all.length };
  }

  /**
   * @param given the url is not checked yet; the secret is by default a new one
   * @param key the client's Idempotency-Key
   * @returns the only view that shows the secret, also to a repeated call
   * @throws InferenceError `webhook_limit`, `url_not_allowed`, `idempotency_mismatch` or
   * `unavailable`
   */
  async make(caller: Caller, given: NewWebhook, key?: string): Promise<Repeatable> {
    const { redis, webhooks, allowed, box } = this.#settings;
    const { tenant, budget } = caller;
    const { events, url, secret = newSecret() } = given;
    const { draft: webhook, isReplayed } = await once<Webhook>(redis, {
      place: placeOf(caller, key),
      asked: ["make", events, typeof url === "string" ? url : null, given.secret ?? null],
      draft: async () => {
        const href = await readUrl(url, allowed);
        const id = `wh_${randomBytes(ID_BYTES).toString("base64url")}`;
        const sealed = box.seal(secret, ownerOf({ tenant, id }));
        return { id, tenant, url: href, events, enabled: true, createdAt: Date.now(), secret: sealed };
      },
      make: (drafted) => changeInRedis(() => webhooks.make(drafted, budget?.counts?.webhooks)),
    });
    return { webhook: viewOf(webhook, box.open(webhook.secret, ownerOf(webhook))), isReplayed };
  }

  /** @throws InferenceError `unknown_webhook` or `unavailable` */
  async view(caller: Caller, id: string): Promise<WebhookView> {
    return viewOf(await this.#find(caller, id));
  }

  /**
   * Changes the given members.
   * @throws InferenceError `unknown_webhook`, `url_not_allowed` or `unavailable`
   */
  async change(
    caller: Caller,
    id: string,
    given: {
      readonly events?: Events | undefined;
      readonly enabled?: boolean | undefined;
      readonly url?: JsonValue | undefined;
    },
  ): Promise<WebhookView> {
    const { events, enabled, url } = given;
    // Checks the new values first, so that a bad value gives 400 even for an unknown webhook.
    const changed = {
      ...(events !== undefined && { events }),
      ...(enabled !== undefined && { enabled }),
      ...(url !== undefined && { url: await readUrl(url, this.#settings.allowed) }),
    };
    return this.#change(caller, id, (one) => {
      const { disabledReason, ...rest } = { ...one, ...changed };
      return rest.enabled || disabledReason === undefined ? rest : { ...rest, disabledReason };
    });
  }

  /** @throws InferenceError `unknown_webhook` or `unavailable` */
  async remove(caller: Caller, id: string): Promise<void> {
    await this.#find(caller, id);
    try {
      await changeInRedis(() => this.#settings.webhooks.change(caller.tenant, id, () => undefined));
    } catch (error) {
      // Another call, or an earlier copy of this call, has removed the webhook meanwhile.
      if (!(error instanceof InferenceError) || error.code !== "unknown_webhook") throw error;
    }
  }

  /**
   * Gives the webhook a new secret.
   * @param overlapMs how long the old secret also signs
   * @param key the client's Idempotency-Key
   * @returns the only view that shows the new secret, also to a repeated call
   * @throws InferenceError `unknown_webhook`, `idempotency_mismatch` or `unavailable`
   */
  async rotate(caller: Caller, id: string, overlapMs: number, key?: string): Promise<Repeatable> {
    if (overlapMs > MOST_OVERLAP_MS) {
      throw new InferenceError("invalid_argument", `overlap must be at most ${MOST_OVERLAP_MS} ms`);
    }
    const { redis, box } = this.#settings;
    const { draft: sealed, isReplayed } = await once<string>(redis, {
      place: placeOf(caller, key),
      asked: ["rotate", id, overlapMs],
      draft: async () => box.seal(newSecret(), ownerOf(await this.#find(caller, id))),
      make: async (drafted) => {
        await this.#change(caller, id, (one) => {
          if (one.secret === drafted) return one; // an earlier copy of this call was faster
          const { previous: _, ...rest } = one;
          const before = { secret: one.secret, until: Date.now() + overlapMs };
          return { ...rest, secret: drafted, ...(overlapMs > 0 && { previous: before }) };
        });
      },
    });
    const webhook = await this.#find(caller, id);
    return { webhook: viewOf(webhook, box.open(sealed, ownerOf(webhook))), isReplayed };
  }

  async #find({ tenant }: Caller, id: string): Promise<Webhook> {
    const found = await askRedis(() => this.#settings.webhooks.find(tenant, id));
    if (found === undefined) throw fixedError("unknown_webhook", "usual");
    return found;
  }

  async #change({ tenant }: Caller, id: string, how: (webhook: Webhook) => Webhook): Promise<WebhookView> {
    const changed = await changeInRedis(() => this.#settings.webhooks.change(tenant, id, how));
    if (changed === undefined) throw new TypeError("a changed webhook was removed");
    return viewOf(changed);
  }
}

function placeOf(caller: Caller, key: string | undefined): string | undefined {
  return key === undefined ? undefined : webhookKeys.change(nameOf(caller, key));
}
