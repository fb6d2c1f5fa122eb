/** `/v2/keys` and `/v2/whoami`: who may ask, and who is asking. */
import { z } from "zod";
import { InferenceError } from "#shared/errors.js";
import { asString } from "#shared/json/members.js";
import { LONGEST_OVERLAP_MS } from "../auth/keys.js";
import { keyStates, type KeyState } from "../auth/key-view.js";
import { LONGEST_NAME } from "../auth/owner/records.js";
import { scopes } from "../auth/owner/scopes.js";
import { jsonReply, withHeaders, type Reply } from "../formats/reply.js";
import { instantOf } from "../jobs/options.js";
import type { KeyService, ShownKey } from "../service/keys.js";
import { endpointsOf } from "./endpoint/endpoint.js";
import { size, type Member } from "./endpoint/members.js";
import {
  limitsMember,
  limitsShape,
  modelsMember,
  scopesMember,
  tenantMember,
  tenantParameter,
} from "./endpoint/owner-members.js";
import { listOf, pageQuery, pageShape } from "./endpoint/page.js";
import type { Parameter } from "./endpoint/parameters.js";

const endpoint = endpointsOf<KeyService>("none");

export const keyShape = () =>
  z.strictObject({
    id: z.string(),
    object: z.literal("key"),
    tenant: z.string(),
    name: z.string(),
    last4: z.string().nullable(),
    scopes: z.array(z.enum(scopes)),
    models: z.array(z.string()),
    state: z.enum(keyStates),
    created_at: z.string().nullable(),
    created_by: z.string().nullable(),
    expires_at: z.string().nullable(),
    revoked_at: z.string().nullable(),
    last_used_at: z.string().nullable(),
    rotated_from: z.string().nullable(),
    limits: limitsShape("key"),
    source: z.literal("redis"),
  });
export const newKeyShape = () => keyShape().extend({ key: z.string() });
const standingShape = () => z.strictObject({ remaining: z.number(), reset: z.number() });
const whoAmIShape = () =>
  z.strictObject({
    tenant: z.string(),
    auth: z.enum(["off", "keys", "jwt"]),
    key: keyShape().nullable(),
    limits: limitsShape("tenant"),
    used: z.strictObject({
      requests: standingShape().optional(),
      tokens: standingShape().optional(),
      concurrent_streams: z.number().optional(),
      open_readers: z.number().optional(),
      queued_requests: z.number(),
      queued_bytes: z.number(),
      live_sequences: z.number(),
      jobs: z.number(),
      schedules: z.number(),
      webhooks: z.number(),
      batches: z.number(),
      files: z.number(),
      file_bytes: z.number(),
    }),
  });

/** Operators print names on terminals: no control character, and none that turns the writing. */
const PLAIN = "^[^\\u0000-\\u001f\\u007f-\\u009f\\u202a-\\u202e\\u2066-\\u2069]*$";
const plain = new RegExp(PLAIN);

const name: Member<string> = {
  schema: { type: "string", maxLength: LONGEST_NAME, pattern: PLAIN },
  read(value, member) {
    const text = asString(value, member);
    if (text.length <= LONGEST_NAME && plain.test(text)) return text;
    const message = `${member} must be at most ${LONGEST_NAME} characters, and no control characters`;
    throw new InferenceError("invalid_argument", message);
  },
};
const expiresAt: Member<number | null> = {
  schema: { type: ["string", "null"], format: "date-time", description: "null: the key never expires" },
  read(value, member) {
    if (value === null) return null;
    const ms = instantOf(asString(value, member));
    if (ms !== undefined) return ms;
    throw new InferenceError("invalid_argument", `${member} must be a time such as 2027-01-01T00:00:00Z, or null`);
  },
};
const rights = { name, scopes: scopesMember, models: modelsMember, expires_at: expiresAt, limits: limitsMember("key") };
const overlap: Member<number> = { ...size, schema: { ...size.schema, maximum: LONGEST_OVERLAP_MS } };
const state: Parameter<KeyState | undefined> = {
  schema: { type: "string", enum: keyStates },
  read([given]) {
    const found = keyStates.find((one) => one === given);
    if (found !== undefined || given === undefined) return found;
    throw new InferenceError("invalid_argument", `state must be one of ${keyStates.join(", ")}, not '${given}'`);
  },
};

export const keyEndpoints = [
  endpoint({
    method: "GET",
    path: "/v2/whoami",
    right: "any",
    does: "Shows the caller's tenant and key, the limits in force, and how much of them is used.",
    answers: { 200: { says: "The tenant, and the key if the deployment asks for keys.", shape: whoAmIShape } },
    handle: async ({ caller }, keys) => jsonReply(await keys.whoami(caller)),
  }),
  endpoint({
    method: "GET",
    path: "/v2/keys",
    right: "admin",
    does: "Lists the API keys of the tenant, or for an operator of all tenants, the newest first.",
    query: { tenant: tenantParameter, state, ...pageQuery },
    answers: { 200: { says: "A page of keys.", shape: () => pageShape(keyShape()) } },
    refusals: ["unsupported", "insufficient_scope"],
    async handle({ caller, query }, keys) {
      const { data, hasMore } = await keys.list(caller, query);
      return jsonReply(listOf(data, hasMore));
    },
  }),
  endpoint({
    method: "POST",
    path: "/v2/keys",
    right: "admin",
    does: "Makes an API key. Only this answer shows it.",
    members: { tenant: tenantMember, ...rights },
    answers: { 201: { says: "The key.", shape: newKeyShape } },
    refusals: ["insufficient_scope", "idempotency_mismatch", "outcome_unknown"],
    async handle(asked, keys) {
      const idempotencyKey = asked.idempotencyKey();
      const { expires_at: expiresAt, ...given } = await asked.members();
      return shown(await keys.make(asked.caller, { ...given, expiresAt }, idempotencyKey));
    },
  }),
  endpoint({
    method: "GET",
    path: "/v2/keys/:id",
    right: "admin",
    does: "Shows an API key without its secret.",
    answers: { 200: { says: "The key.", shape: keyShape } },
    refusals: ["unsupported", "unknown_key"],
    handle: async (asked, keys) => jsonReply(await keys.view(asked.caller, asked.segment("id"))),
  }),
  endpoint({
    method: "PATCH",
    path: "/v2/keys/:id",
    right: "admin",
    does: "Changes the given members of an API key.",
    members: rights,
    answers: { 200: { says: "The key after the change.", shape: keyShape } },
    refusals: ["unknown_key", "insufficient_scope", "last_operator_key", "outcome_unknown"],
    async handle(asked, keys) {
      const { expires_at: expiresAt, ...given } = await asked.members();
      return jsonReply(await keys.change(asked.caller, asked.segment("id"), { ...given, expiresAt }));
    },
  }),
  endpoint({
    method: "DELETE",
    path: "/v2/keys/:id",
    right: "admin",
    does: "Revokes an API key. The key stays in lists for 30 days.",
    answers: { 200: { says: "The revoked key.", shape: keyShape } },
    refusals: ["unsupported", "unknown_key", "last_operator_key", "outcome_unknown"],
    handle: async (asked, keys) => jsonReply(await keys.revoke(asked.caller, asked.segment("id"))),
  }),
  endpoint({
    method: "POST",
    path: "/v2/keys/:id/rotate",
    right: "admin",
    does: "Makes a key with the same rights in place of an API key. Only this answer shows it.",
    members: { overlap },
    mayBeEmpty: true,
    answers: { 201: { says: "The new key. The former key ends after the overlap.", shape: newKeyShape } },
    refusals: ["unknown_key", "insufficient_scope", "idempotency_mismatch", "outcome_unknown"],
    async handle(asked, keys) {
      const idempotencyKey = asked.idempotencyKey();
      const { overlap = 0 } = await asked.members();
      return shown(await keys.rotate(asked.caller, asked.segment("id"), overlap, idempotencyKey));
    },
  }),
];

function shown({ view, isReplayed }: ShownKey): Reply {
  return withHeaders(jsonReply(view, 201), {
    location: `/v2/keys/${view.id}`,
    ...(isReplayed && { "idempotent-replayed": "true" }),
  });
}
