/** `/v2/webhooks` and `/v2/deliveries`: the webhooks of a tenant, and the deliveries to them. */
import { randomBytes } from "node:crypto";
import type { Context } from "hono";
import { fixedError, InferenceError } from "#shared/errors.js";
import { asBoolean, asSize, parseRequestJson, required } from "#shared/json/members.js";
import type { JsonObject } from "#shared/json/parse.js";
import { askForReplay, eventTypes } from "#shared/queue/pieces/events.js";
import {
  deliveryStates,
  listDeliveries,
  placeOf,
  readSummary,
  type DeliverySummary,
  type Messages,
} from "#shared/queue/webhooks/deliveries.js";
import { noteReplay, replayLimits } from "#shared/queue/webhooks/note-replay.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { askRedis, changeInRedis } from "../admission/ask-redis.js";
import type { Bodies } from "../http/bodies.js";
import type { Limits } from "../http/limits.js";
import { readQuery, withoutOthers } from "../http/query.js";
import { jsonReply, noContent, withHeaders } from "../http/reply.js";
import type { GatewayEnv, Router } from "../http/router.js";
import type { TenantOf } from "../http/tenant.js";
import type { AddressRanges } from "./addresses.js";
import { listOf, readLimit, unknownPlace } from "./page.js";
import { readEvents, readSecret, readUrl } from "./read.js";
import { newSecret, type SecretBox } from "./secrets.js";
import { ownerOf, viewOf, type Webhook } from "./webhook.js";
import type { Webhooks } from "./webhooks.js";

export interface WebhookRoutesOptions {
  readonly redis: RedisClient;
  readonly webhooks: Webhooks;
  /** Ranges to which a webhook may lead although they are not public. */
  readonly allowed: AddressRanges;
  readonly box: SecretBox;
}

export interface HttpOptions {
  readonly bodies: Bodies;
  readonly limits: Limits;
  readonly tenantOf: TenantOf;
}

/** The longest time for which two secrets sign. */
const MOST_OVERLAP_MS = 30 * 86_400_000;
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

export function addWebhookRoutes(
  router: Router,
  { redis, webhooks, allowed, box }: WebhookRoutesOptions,
  { bodies, limits, tenantOf }: HttpOptions,
): void {
  const body = (c: Context<GatewayEnv>, members: readonly string[], mayBeEmpty = false): Promise<JsonObject> => {
    const { incoming } = c.env;
    const terms = { maxBytes: limits.controlBytes, encoding: incoming.headers["content-encoding"] };
    return bodies.use(incoming, terms, (bytes) =>
      mayBeEmpty && bytes.length === 0 ? {} : withoutOthers(parseRequestJson(bytes), members),
    );
  };
  const named = async (c: Context<GatewayEnv>): Promise<Webhook> => {
    const tenant = tenantOf(c.env.incoming);
    const found = await askRedis(() => webhooks.find(tenant, c.req.param("id") ?? ""));
    if (found === undefined) throw fixedError("unknown_webhook", "usual");
    return found;
  };
  const change = (
    c: Context<GatewayEnv>,
    how: (webhook: Webhook) => Webhook | undefined,
  ): Promise<Webhook | undefined> => {
    const tenant = tenantOf(c.env.incoming);
    return changeInRedis(() => webhooks.change(tenant, c.req.param("id") ?? "", how));
  };

  router.add("/v2/webhooks", {
    GET: async (c) => {
      const { limit, after } = readQuery(c.env.incoming, ["limit", "after"]);
      const most = readLimit(limit);
      const all = (await askRedis(() => webhooks.list(tenantOf(c.env.incoming)))).reverse();
      const from = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
      if (after !== undefined && from === 0) throw unknownPlace();
      const page = all.slice(from, from + most);
      return jsonReply(
        listOf(
          page.map((one) => viewOf(one)),
          from + most < all.length,
        ),
      );
    },
    POST: async (c) => {
      const tenant = tenantOf(c.env.incoming);
      const given = await body(c, ["url", "events", "secret"]);
      const events = readEvents(required(given, "events"), eventTypes);
      const { secret: chosen } = given;
      const secret = chosen === undefined ? newSecret() : readSecret(chosen);
      const url = await readUrl(required(given, "url"), allowed);
      const id = `wh_${randomBytes(ID_BYTES).toString("base64url")}`;
      const sealed = box.seal(secret, ownerOf({ tenant, id }));
      const webhook: Webhook = { id, tenant, url, events, enabled: true, createdAt: Date.now(), secret: sealed };
      await changeInRedis(() => webhooks.make(webhook));
      return withHeaders(jsonReply(viewOf(webhook, secret), 201), { location: `/v2/webhooks/${id}` });
    },
  });
  router.add("/v2/webhooks/:id", {
    GET: async (c) => jsonReply(viewOf(await named(c))),
    PATCH: async (c) => {
      const { url: href, events, enabled } = await body(c, ["url", "events", "enabled"]);
      // Checks the new values first, so that a bad value gives 400 even for an unknown webhook.
      const changed = {
        ...(events !== undefined && { events: readEvents(events, eventTypes) }),
        ...(enabled !== undefined && { enabled: asBoolean(enabled, "enabled") }),
        ...(href !== undefined && { url: await readUrl(href, allowed) }),
      };
      const webhook = await change(c, (one) => {
        const { disabledReason, ...rest } = { ...one, ...changed };
        return rest.enabled || disabledReason === undefined ? rest : { ...rest, disabledReason };
      });
      return webhook && jsonReply(viewOf(webhook));
    },
    DELETE: async (c) => {
      await named(c);
      try {
        await change(c, () => undefined);
      } catch (error) {
        // Another call, or an earlier copy of this call, has removed the webhook meanwhile.
        if (!(error instanceof InferenceError) || error.code !== "unknown_webhook") throw error;
      }
      return noContent;
    },
  });
  router.add("/v2/webhooks/:id/rotate", {
    POST: async (c) => {
      const { overlap = 0 } = await body(c, ["overlap"], true);
      const overlapMs = asSize(overlap, "overlap");
      if (overlapMs > MOST_OVERLAP_MS) {
        throw new InferenceError("invalid_argument", `overlap must be at most ${MOST_OVERLAP_MS} ms`);
      }
      const secret = newSecret();
      const sealed = box.seal(secret, ownerOf(await named(c)));
      const webhook = await change(c, (one) => {
        if (one.secret === sealed) return one; // an earlier copy of this call has made the change
        const { previous: _, ...rest } = one;
        const before = { secret: one.secret, until: Date.now() + overlapMs };
        return { ...rest, secret: sealed, ...(overlapMs > 0 && { previous: before }) };
      });
      return webhook && jsonReply(viewOf(webhook, secret));
    },
  });

  router.add("/v2/deliveries", {
    GET: async (c) => {
      const { limit, after, state, ...filter } = readQuery(c.env.incoming, [
        "limit",
        "after",
        "job",
        "webhook",
        "state",
      ]);
      const most = readLimit(limit);
      const states = state?.split(",");
      const wrong = states?.find((one) => !deliveryStates.some((known) => known === one));
      if (wrong !== undefined) {
        const known = deliveryStates.join(", ");
        throw new InferenceError("invalid_argument", `there is no state '${wrong}'; there are: ${known}`);
      }
      const isWanted = (one: DeliverySummary) =>
        (states === undefined || states.includes(one.state)) &&
        (filter.webhook === undefined || filter.webhook === one.webhook);
      const of = { tenant: tenantOf(c.env.incoming), job: filter.job };
      const { deliveries, hasMore, last } = await askRedis(() => findDeliveries(redis, of, after, most, isWanted));
      return jsonReply({ ...listOf(deliveries.map(deliveryView), hasMore), last_id: last ?? null });
    },
  });
  router.add("/v2/deliveries/:message/replay", {
    POST: async (c) => {
      const tenant = tenantOf(c.env.incoming);
      await body(c, [], true);
      const message = c.req.param("message") ?? "";
      const name = randomBytes(ID_BYTES).toString("base64url");
      const said = await changeInRedis(() => noteReplay(redis, tenant, message, name));
      const delivery = said === "unknown" ? undefined : await askRedis(() => readSummary(redis, tenant, message));
      if (said === "unknown" || delivery === undefined) throw fixedError("unknown_delivery", "usual");
      if (said !== "granted") throw new InferenceError("replay_limit", tooOften[said]);
      await changeInRedis(() => askForReplay(redis, tenant, message));
      return jsonReply(deliveryView({ ...delivery, state: "pending", nextAt: Date.now() }), 202);
    },
  });
}

interface FoundDeliveries {
  readonly deliveries: readonly DeliverySummary[];
  readonly hasMore: boolean;
  /** The next page begins behind this message. */
  readonly last: string | undefined;
}

/**
 * Finds a page of deliveries. If few deliveries match, the page ends early, so that no page costs
 * Redis long.
 */
async function findDeliveries(
  redis: RedisClient,
  of: Messages,
  after: string | undefined,
  most: number,
  isWanted: (delivery: DeliverySummary) => boolean,
): Promise<FoundDeliveries> {
  const place = after === undefined ? -1 : await placeOf(redis, of, after);
  if (place === undefined) throw unknownPlace();
  const found: DeliverySummary[] = [];
  let last = after;
  for (let from = place + 1; from <= place + MOST_LOOKED_AT; from += LOOKED_AT) {
    const messages = await listDeliveries(redis, of, from, LOOKED_AT);
    const deliveries = await Promise.all(messages.map((message) => readSummary(redis, of.tenant, message)));
    found.push(...deliveries.filter((one) => one !== undefined).filter(isWanted));
    const page = found.slice(0, most);
    if (found.length > most) return { deliveries: page, hasMore: true, last: page.at(-1)?.message };
    if (messages.length < LOOKED_AT) return { deliveries: page, hasMore: false, last: page.at(-1)?.message };
    last = messages.at(-1);
  }
  return { deliveries: found, hasMore: true, last };
}

function deliveryView({ message, event, job, webhook, state, attempts, nextAt }: DeliverySummary) {
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
