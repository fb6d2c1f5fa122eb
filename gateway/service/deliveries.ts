/** The operations on the deliveries to a tenant's webhooks. */
import { randomBytes } from "node:crypto";
import { fixedError, InferenceError } from "#shared/errors.js";
import { webhookKeys } from "#shared/queue/keys.js";
import { askForReplay } from "#shared/queue/pieces/events.js";
import {
  listDeliveries,
  placeOf,
  readSummary,
  type DeliverySummary,
  type Messages,
} from "#shared/queue/webhooks/deliveries.js";
import { noteReplay, replayLimits } from "#shared/queue/webhooks/note-replay.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { askRedis, changeInRedis } from "../admission/ask-redis.js";
import type { Caller } from "./caller.js";
import { unknownPlace, type Page, type PageTerms } from "./page.js";
import { nameOf, once } from "./repeated/once.js";

/** Deliveries per read of a list. */
const LOOKED_AT = 100;
/** Most deliveries to read for one page. */
const MOST_LOOKED_AT = 1_000;
const ID_BYTES = 16;
const tooOften = {
  spent: `the delivery was replayed ${replayLimits.delivery} times, and it may not be more often`,
  often: `the delivery was replayed ${replayLimits.lately} times in this minute: ask again in the next one`,
  tenant: `${replayLimits.tenant} replays were asked for within a minute: ask again in the next one`,
};

/** Which deliveries a list should have; an absent member allows all. */
export interface DeliveryFilter {
  readonly job?: string | undefined;
  readonly webhook?: string | undefined;
  readonly states?: readonly string[] | undefined;
}

export type DeliveryView = ReturnType<typeof viewOf>;

interface Found {
  readonly deliveries: readonly DeliverySummary[];
  readonly hasMore: boolean;
  /** The next page begins behind this message. */
  readonly last: string | undefined;
}

export class DeliveryService {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /**
   * Lists the deliveries, the newest first. If few match, the page ends early, so that no page
   * costs Redis long.
   * @returns the page, and the id behind which the next page begins
   * @throws InferenceError
   */
  async list(
    { tenant }: Caller,
    { limit, after }: PageTerms,
    { job, webhook, states }: DeliveryFilter,
  ): Promise<Page<DeliveryView> & { readonly last: string | undefined }> {
    const isWanted = (one: DeliverySummary) =>
      (states === undefined || states.includes(one.state)) && (webhook === undefined || webhook === one.webhook);
    const { deliveries, hasMore, last } = await askRedis(() => this.#find({ tenant, job }, after, limit, isWanted));
    return { data: deliveries.map(viewOf), hasMore, last };
  }

  /**
   * Sends the delivery's message once more.
   * @param key the client's Idempotency-Key
   * @throws InferenceError `unknown_delivery`, `replay_limit`, `idempotency_mismatch` or
   * `unavailable`
   */
  async replay(
    caller: Caller,
    message: string,
    key?: string,
  ): Promise<{ readonly delivery: DeliveryView; readonly isReplayed: boolean }> {
    const redis = this.#redis;
    const { tenant } = caller;
    const read = async () => {
      const delivery = await askRedis(() => readSummary(redis, tenant, message));
      if (delivery === undefined) throw fixedError("unknown_delivery", "usual");
      return delivery;
    };
    const { isReplayed } = await once<string>(redis, {
      place: key === undefined ? undefined : webhookKeys.change(nameOf(caller, key)),
      asked: ["replay", message],
      draft: () => Promise.resolve(randomBytes(ID_BYTES).toString("base64url")),
      make: async (name) => {
        const said = await changeInRedis(() => noteReplay(redis, tenant, message, name));
        if (said === "unknown") throw fixedError("unknown_delivery", "usual");
        if (said !== "granted") throw new InferenceError("replay_limit", tooOften[said]);
        await changeInRedis(() => askForReplay(redis, tenant, message, name));
      },
    });
    const delivery = await read();
    // The jobs process has not taken the replay yet.
    const isNew = !isReplayed && { state: "pending" as const, nextAt: Date.now() };
    return { delivery: viewOf({ ...delivery, ...isNew }), isReplayed };
  }

  async #find(
    of: Messages,
    after: string | undefined,
    most: number,
    isWanted: (delivery: DeliverySummary) => boolean,
  ): Promise<Found> {
    const place = after === undefined ? -1 : await placeOf(this.#redis, of, after);
    if (place === undefined) throw unknownPlace();
    const found: DeliverySummary[] = [];
    let last = after;
    for (let from = place + 1; from <= place + MOST_LOOKED_AT; from += LOOKED_AT) {
      const messages = await listDeliveries(this.#redis, of, from, LOOKED_AT);
      const deliveries = await Promise.all(messages.map((message) => readSummary(this.#redis, of.tenant, message)));
      found.push(...deliveries.filter((one) => one !== undefined).filter(isWanted));
      const page = found.slice(0, most);
      if (found.length > most) return { deliveries: page, hasMore: true, last: page.at(-1)?.message };
      if (messages.length < LOOKED_AT) return { deliveries: page, hasMore: false, last: page.at(-1)?.message };
      last = messages.at(-1);
    }
    return { deliveries: found, hasMore: true, last };
  }
}

function viewOf({ message, event, job, webhook, state, attempts, nextAt }: DeliverySummary) {
  return {
    id: message,
    object: "delivery",
    event,
    job: job === "" ? null : job,
    // A webhook that is part of a job has no id.
    webhook: webhook === "" ? null : webhook,
    state,
    attempts,
    next_attempt_at: state === "pending" && nextAt !== undefined ? new Date(nextAt).toISOString() : null,
  };
}
