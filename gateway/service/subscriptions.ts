/**
 * The operations on subscriptions. They give a client the means to read from NATS without a
 * gateway: the subject, the servers, and credentials for that subject alone. If the deployment
 * captures records, the client also gets a consumer that begins at an index.
 */
import { randomBytes } from "node:crypto";
import { TOKEN_STREAM } from "#shared/capture/captured.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { isRefused } from "#shared/nats/client.js";
import { labelToken, subjectsOf, subjectsOfLabel, tokenSubject } from "#shared/queue/keys.js";
import type { Audit } from "../auth/audit.js";
import type { Label } from "../jobs/options.js";
import { addressOf, findLog, type LogPlace } from "../requests/find-log.js";
import type { Tail } from "../stream/page-status.js";
import type { Consumer, ConsumerTerms } from "../subscriptions/consumers.js";
import type { Credentials, Permissions } from "../subscriptions/credentials.js";
import type { SubscriptionParts } from "../subscriptions/open.js";
import { subjectsOfReader } from "../subscriptions/reader-account.js";
import type { Caller } from "./caller.js";

export type SubscriptionServiceSettings = LogPlace & SubscriptionParts & { readonly audit?: Audit | undefined };

export interface SubscriptionTerms {
  /** The index of the first record; undefined if the client names no index. */
  readonly from: number | undefined;
  /**
   * The client's name for a durable consumer, which keeps the client's place; undefined for none.
   */
  readonly durable: string | undefined;
  /** How long the credentials are valid. */
  readonly ttlMs: number;
}

/**
 * The streams of a tenant that a subscription covers: the streams of a model, of a label, or all.
 */
export interface Scope {
  readonly model?: string | undefined;
  readonly label?: Label | undefined;
}

/** The body of the answer. */
export interface Subscription {
  readonly subject: string;
  readonly servers: readonly string[];
  readonly inbox_prefix: string;
  readonly expires_at: string;
  readonly credentials: Credentials;
  readonly jetstream: { readonly stream: string; readonly consumer: string; readonly from: number } | null;
}

export class SubscriptionService {
  readonly #settings: SubscriptionServiceSettings;

  constructor(settings: SubscriptionServiceSettings) {
    this.#settings = settings;
  }

  /**
   * Gives a client the means to read a request.
   * @throws InferenceError `unknown_request`, `not_a_stream`, `ahead_of_log`,
   * `resume_window_passed`, `subscription_limit`, `unsupported` or `unavailable`
   */
  async toRequest(caller: Caller, id: string, terms: SubscriptionTerms): Promise<Subscription> {
    const { consumers } = this.#settings;
    this.#need(terms);
    const { tenant } = caller;
    const address = addressOf(tenant, id);
    const log = await findLog(this.#settings, address);
    let tail: Tail;
    try {
      tail = await log.tail();
    } catch (error) {
      // The log has expired, but JetStream may still have records.
      const captured = isGone(error) && consumers && (await inJetStream(() => consumers.capturedTail(address)));
      if (captured === undefined || captured === false) throw error;
      tail = captured;
    }
    if (terms.from !== undefined && terms.from > tail.next) throw fixedError("ahead_of_log", "usual");
    const subject = tokenSubject(address);
    const wanted = this.#wanted(caller, subject, terms);
    const consumer = consumers && (await inJetStream(() => consumers.ofRequest(address, wanted, terms.from, tail)));
    return this.#answer(caller, wanted, consumer);
  }

  /**
   * Gives a client the means to read a tenant's requests: all, the requests to a model, or the
   * requests of jobs with a label. Such jobs need not exist yet.
   * @throws InferenceError `invalid_argument` for a model and a label; `unknown_model`,
   * `not_a_stream`, `subscription_limit`, `unsupported` or `unavailable`
   */
  async toMany(caller: Caller, { model, label }: Scope, terms: Omit<SubscriptionTerms, "from">): Promise<Subscription> {
    const { relay, consumers } = this.#settings;
    if (model !== undefined && label !== undefined) throw fixedError("invalid_argument", "subscriptionScopes");
    this.#need(terms);
    if (model !== undefined) {
      const hasStreams = caller.mayUse(model) ? relay.models.hasStreams(model) : undefined;
      if (hasStreams === undefined) throw new InferenceError("unknown_model", `Request for unknown model: '${model}'`);
      if (!hasStreams) throw fixedError("not_a_stream", "model");
    }
    const { tenant } = caller;
    const subject =
      label === undefined ? subjectsOf(tenant, model) : subjectsOfLabel(tenant, labelToken(label.name, label.value));
    const wanted = this.#wanted(caller, subject, terms);
    const consumer = consumers && (await inJetStream(() => consumers.ofMany(wanted)));
    return this.#answer(caller, wanted, consumer);
  }

  #wanted(caller: Caller, subject: string, { durable, ttlMs }: Omit<SubscriptionTerms, "from">): ConsumerTerms {
    const { tenant, budget } = caller;
    return { tenant, subject, durable, ttlMs: this.#lifeOf(caller, ttlMs), most: budget?.counts?.subscriptions };
  }

  /** In ms: no longer than the client's key, which the credentials would outlive. */
  #lifeOf({ keyId, expiresAt }: Caller, ttlMs: number): number {
    if (keyId === undefined) return ttlMs;
    return Math.min(ttlMs, this.#settings.keyedMs, Math.max(1, (expiresAt ?? Infinity) - Date.now()));
  }

  /** @throws InferenceError if the deployment lacks the settings for these terms */
  #need({ durable }: Pick<SubscriptionTerms, "durable">): void {
    if (this.#settings.credentials === undefined) throw fixedError("unsupported", "natsCredentials");
    if (durable !== undefined && this.#settings.consumers === undefined) {
      throw fixedError("invalid_argument", "durableWithoutCapture");
    }
  }

  async #answer(
    { keyId }: Caller,
    { tenant, subject, ttlMs }: ConsumerTerms,
    consumer: Consumer | undefined,
  ): Promise<Subscription> {
    const { servers, credentials, audit } = this.#settings;
    if (credentials === undefined) throw fixedError("unsupported", "natsCredentials");
    const inbox = `_INBOX_${randomBytes(16).toString("hex")}`;
    const expiresAt = Math.ceil((Date.now() + ttlMs) / 1_000);
    const permissions = {
      subscribe: [subject, `${inbox}.>`],
      publish: consumer === undefined ? [] : subjectsOfReader(consumer.name),
    } satisfies Permissions;
    const made = await credentials.make(`subscription of ${tenant}`, permissions, expiresAt);
    audit?.note("subscription_issued", { tenant, key_id: keyId });
    return {
      subject,
      servers,
      inbox_prefix: inbox,
      expires_at: new Date(expiresAt * 1_000).toISOString(),
      credentials: made,
      jetstream: consumer === undefined ? null : { stream: TOKEN_STREAM, consumer: consumer.name, from: consumer.from },
    };
  }
}

function isGone(error: unknown): boolean {
  return error instanceof InferenceError && ["unknown_request", "resume_window_passed"].includes(error.code);
}

/**
 * @throws InferenceError `unavailable` if JetStream does not answer; a refusal of JetStream itself
 * passes as it is, because it means a bug
 */
async function inJetStream<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (cause) {
    if (cause instanceof InferenceError || isRefused(cause)) throw cause;
    throw fixedError("unavailable", "jetStream", { cause });
  }
}
