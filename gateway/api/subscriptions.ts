/** `/v2/requests/<id>/subscription` and `/v2/subscriptions`: reading streams straight from NATS. */
import { z } from "zod";
import { InferenceError } from "#shared/errors.js";
import { asString } from "#shared/json/members.js";
import { secretReply } from "../formats/reply.js";
import { readLabel, type Label } from "../jobs/options.js";
import type { SubscriptionService } from "../service/subscriptions.js";
import { endpointsOf } from "./endpoint/endpoint.js";
import { lifetime, size, string, type Member } from "./endpoint/members.js";

const endpoint = endpointsOf<SubscriptionService>("inference");

/** How long credentials are valid, in ms. */
const TTL_MS = { usual: 600_000, least: 1_000, most: 3_600_000 };

const subscriptionShape = () =>
  z.strictObject({
    subject: z.string(),
    servers: z.array(z.string()),
    inbox_prefix: z.string(),
    expires_at: z.string(),
    credentials: z.strictObject({ jwt: z.string(), seed: z.string() }),
    jetstream: z.strictObject({ stream: z.string(), consumer: z.string(), from: z.number() }).nullable(),
  });

const from: Member<number> = { ...size, schema: { ...size.schema, description: "the index of the first record" } };
const label: Member<Label> = {
  schema: { type: "string", description: "a label of jobs, such as team:blue", pattern: "^[A-Za-z0-9_.-]{1,64}:" },
  read: (value, name) => readLabel(asString(value, name)),
};
const durable: Member<string> = {
  schema: { type: "string", description: "the name of a consumer", pattern: "^[A-Za-z0-9_-]{1,64}$" },
  read: (value, name) => {
    const text = asString(value, name);
    if (/^[\w-]{1,64}$/.test(text)) return text;
    throw new InferenceError("invalid_argument", `'${name}' must be 1 to 64 of the characters A-Z, a-z, 0-9, _ and -`);
  },
};
const ttl = lifetime(TTL_MS, "how long the credentials are valid, in ms");

const answers = { 200: { says: "The subject, the servers and the credentials.", shape: subscriptionShape } };

export const subscriptionEndpoints = [
  endpoint({
    method: "POST",
    path: "/v2/requests/:id/subscription",
    right: "subscribe",
    does: "Gives the means to read a request's stream straight from NATS.",
    members: { from, durable, ttl },
    mayBeEmpty: true,
    answers,
    refusals: ["unknown_request", "not_a_stream", "ahead_of_log", "resume_window_passed", "subscription_limit"],
    async handle(asked, subscriptions) {
      const { from, durable, ttl: ttlMs = TTL_MS.usual } = await asked.members();
      const terms = { from, durable, ttlMs };
      return secretReply(await subscriptions.toRequest(asked.caller, asked.segment("id"), terms));
    },
  }),
  endpoint({
    method: "POST",
    path: "/v2/subscriptions",
    right: "subscribe",
    does: "Gives the means to read the streams of a model, of a label or of all requests straight from NATS.",
    members: { model: string, label, durable, ttl },
    mayBeEmpty: true,
    answers,
    refusals: ["unknown_model", "not_a_stream", "subscription_limit"],
    async handle(asked, subscriptions) {
      const { model, label, durable, ttl: ttlMs = TTL_MS.usual } = await asked.members();
      return secretReply(await subscriptions.toMany(asked.caller, { model, label }, { durable, ttlMs }));
    },
  }),
];
