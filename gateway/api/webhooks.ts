/** `/v2/webhooks`: where Baton sends a tenant's events. */
import { z } from "zod";
import { eventTypes, type EventType } from "#shared/queue/pieces/events.js";
import { jsonReply, noContent, withHeaders } from "../formats/reply.js";
import { MOST_OVERLAP_MS, type WebhookService } from "../service/webhooks.js";
import { readEvents, readSecret } from "../webhooks/read.js";
import { endpointsOf } from "./endpoint/endpoint.js";
import { anything, boolean, needed, size, type Member } from "./endpoint/members.js";
import { listOf, pageQuery, pageShape } from "./endpoint/page.js";

const endpoint = endpointsOf<WebhookService>("inference");

export const webhookShape = () =>
  z.strictObject({
    id: z.string(),
    object: z.literal("webhook"),
    url: z.string(),
    events: z.array(z.enum(eventTypes)),
    enabled: z.boolean(),
    disabled_reason: z.literal("gone").optional(),
    created_at: z.string(),
    secret: z.string().optional(),
    previous_secret_until: z.string().optional(),
  });

const events: Member<EventType[]> = {
  schema: { type: "array", items: { enum: eventTypes }, minItems: 1 },
  read: (value) => readEvents(value, eventTypes),
};
const secret: Member<string> = {
  schema: {
    type: "string",
    description: "whsec_ and the base64 of 24 to 64 bytes",
    pattern: "^whsec_(?:[A-Za-z0-9+/]{4}){8,21}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
  },
  read: readSecret,
};
const overlap: Member<number> = { ...size, schema: { ...size.schema, maximum: MOST_OVERLAP_MS } };
const url = anything({ type: "string", format: "uri" });

export const webhookEndpoints = [
  endpoint({
    method: "GET",
    path: "/v2/webhooks",
    right: "read",
    does: "Lists the webhooks, the newest first.",
    query: pageQuery,
    answers: { 200: { says: "A page of webhooks.", shape: () => pageShape(webhookShape()) } },
    async handle({ caller, query }, webhooks) {
      const { data, hasMore } = await webhooks.list(caller, query);
      return jsonReply(listOf(data, hasMore));
    },
  }),
  endpoint({
    method: "POST",
    path: "/v2/webhooks",
    right: "jobs",
    does: "Makes a webhook. Only this answer, also if it is repeated under a key, shows its secret.",
    members: { url: needed(url), events: needed(events), secret },
    answers: { 201: { says: "The webhook, with its secret.", shape: webhookShape } },
    refusals: ["url_not_allowed", "webhook_limit", "idempotency_mismatch", "outcome_unknown"],
    async handle(asked, webhooks) {
      const key = asked.idempotencyKey();
      const { webhook, isReplayed } = await webhooks.make(asked.caller, await asked.members(), key);
      return withHeaders(jsonReply(webhook, 201), {
        location: `/v2/webhooks/${webhook.id}`,
        ...(isReplayed && { "idempotent-replayed": "true" }),
      });
    },
  }),
  endpoint({
    method: "GET",
    path: "/v2/webhooks/:id",
    right: "read",
    does: "Shows a webhook.",
    answers: { 200: { says: "The webhook.", shape: webhookShape } },
    refusals: ["unknown_webhook"],
    handle: async (asked, webhooks) => jsonReply(await webhooks.view(asked.caller, asked.segment("id"))),
  }),
  endpoint({
    method: "PATCH",
    path: "/v2/webhooks/:id",
    right: "jobs",
    does: "Changes the given members of a webhook.",
    members: { url, events, enabled: boolean },
    answers: { 200: { says: "The webhook after the change.", shape: webhookShape } },
    refusals: ["unknown_webhook", "url_not_allowed", "outcome_unknown"],
    handle: async (asked, webhooks) =>
      jsonReply(await webhooks.change(asked.caller, asked.segment("id"), await asked.members())),
  }),
  endpoint({
    method: "DELETE",
    path: "/v2/webhooks/:id",
    right: "jobs",
    does: "Removes a webhook.",
    answers: { 204: { says: "The webhook is gone." } },
    refusals: ["unknown_webhook", "outcome_unknown"],
    async handle(asked, webhooks) {
      await webhooks.remove(asked.caller, asked.segment("id"));
      return noContent;
    },
  }),
  endpoint({
    method: "POST",
    path: "/v2/webhooks/:id/rotate",
    right: "jobs",
    does: "Gives a webhook a new secret. Only this answer, also if it is repeated under a key, shows it.",
    members: { overlap },
    mayBeEmpty: true,
    answers: { 200: { says: "The webhook, with its new secret.", shape: webhookShape } },
    refusals: ["unknown_webhook", "idempotency_mismatch", "outcome_unknown"],
    async handle(asked, webhooks) {
      const key = asked.idempotencyKey();
      const { overlap = 0 } = await asked.members();
      const { webhook, isReplayed } = await webhooks.rotate(asked.caller, asked.segment("id"), overlap, key);
      return withHeaders(jsonReply(webhook), isReplayed ? { "idempotent-replayed": "true" } : {});
    },
  }),
];
