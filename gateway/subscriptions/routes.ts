/** `/v2/requests/<id>/subscription` and `/v2/subscriptions`: reading streams straight from NATS. */
import type { Context } from "hono";
import { fixedError, InferenceError } from "#shared/errors.js";
import { asSize, asString, parseRequestJson } from "#shared/json/members.js";
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import type { Bodies } from "../http/bodies.js";
import type { Limits } from "../http/limits.js";
import { withoutOthers } from "../http/query.js";
import { jsonReply, withHeaders, type Reply } from "../http/reply.js";
import type { GatewayEnv, Router } from "../http/router.js";
import type { TenantOf } from "../http/tenant.js";
import { readLabel } from "../job-paths/options.js";
import type { Scope, Subscription, Subscriptions } from "./subscriptions.js";

export interface SubscriptionRoutesOptions {
  readonly subscriptions: Subscriptions;
  readonly bodies: Bodies;
  readonly limits: Limits;
  readonly tenantOf: TenantOf;
}

/** How long credentials are valid, in ms. */
const TTL_MS = { usual: 600_000, least: 1_000, most: 3_600_000 };

export function addSubscriptionRoutes(
  router: Router,
  { subscriptions, bodies, limits, tenantOf }: SubscriptionRoutesOptions,
): void {
  const body = (c: Context<GatewayEnv>, members: readonly string[]): Promise<JsonObject> => {
    const { incoming } = c.env;
    const terms = { maxBytes: limits.controlBytes, encoding: incoming.headers["content-encoding"] };
    return bodies.use(incoming, terms, (bytes) =>
      bytes.length === 0 ? {} : withoutOthers(parseRequestJson(bytes), members),
    );
  };
  router.add("/v2/requests/:id/subscription", {
    POST: async (c) => {
      const given = await body(c, ["from", "durable", "ttl"]);
      const from = given["from"] === undefined ? undefined : asSize(given["from"], "from");
      const terms = { from, ...commonTerms(given) };
      return told(await subscriptions.toRequest(tenantOf(c.env.incoming), c.req.param("id") ?? "", terms));
    },
  });
  router.add("/v2/subscriptions", {
    POST: async (c) => {
      const given = await body(c, ["model", "label", "durable", "ttl"]);
      return told(await subscriptions.toMany(tenantOf(c.env.incoming), readScope(given), commonTerms(given)));
    },
  });
}

/** @throws InferenceError if the body names a model and a label */
function readScope({ model, label }: JsonObject): Scope {
  if (model !== undefined && label !== undefined) throw fixedError("invalid_argument", "subscriptionScopes");
  if (label !== undefined) return { label: readLabel(asString(label, "label")) };
  return model === undefined ? {} : { model: asString(model, "model") };
}

function commonTerms({ durable, ttl }: JsonObject) {
  return { durable: durable === undefined ? undefined : readDurable(durable), ttlMs: readTtl(ttl) };
}

function readDurable(value: JsonValue): string {
  const name = asString(value, "durable");
  if (/^[\w-]{1,64}$/.test(name)) return name;
  throw new InferenceError("invalid_argument", "'durable' must be 1 to 64 of the characters A-Z, a-z, 0-9, _ and -");
}

function readTtl(value: JsonValue | undefined): number {
  const ttl = value === undefined ? TTL_MS.usual : asSize(value, "ttl");
  if (ttl >= TTL_MS.least && ttl <= TTL_MS.most) return ttl;
  throw new InferenceError("invalid_argument", `'ttl' must be from ${TTL_MS.least} to ${TTL_MS.most} ms`);
}

/** The answer holds a secret, so no cache may keep the answer. */
function told(subscription: Subscription): Reply {
  return withHeaders(jsonReply(subscription), { "cache-control": "no-store" });
}
