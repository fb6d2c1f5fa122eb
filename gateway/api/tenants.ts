/** `/v2/tenants`: the owners of everything, for operators. */
import { z } from "zod";
import { InferenceError } from "#shared/errors.js";
import { asSize } from "#shared/json/members.js";
import { MOST_WEIGHT, tenantStates } from "../auth/owner/records.js";
import { jsonReply, noContent, withHeaders } from "../formats/reply.js";
import type { TenantService } from "../service/tenants.js";
import { endpointsOf } from "./endpoint/endpoint.js";
import { needed, type Member } from "./endpoint/members.js";
import { limitsMember, limitsShape, modelsMember, tenantMember } from "./endpoint/owner-members.js";
import { listOf, pageQuery, pageShape } from "./endpoint/page.js";

const endpoint = endpointsOf<TenantService>("none");

const tenantShape = () =>
  z.strictObject({
    id: z.string(),
    object: z.literal("tenant"),
    weight: z.number(),
    models: z.array(z.string()),
    state: z.enum(tenantStates),
    limits: limitsShape("tenant"),
    created_at: z.string().nullable(),
  });

const weight: Member<number> = {
  schema: {
    type: "integer",
    minimum: 1,
    maximum: MOST_WEIGHT,
    description: "the tenant's share while requests wait",
  },
  read(value, name) {
    const weight = asSize(value, name);
    if (weight >= 1 && weight <= MOST_WEIGHT) return weight;
    throw new InferenceError("invalid_argument", `${name} must be an integer from 1 to ${MOST_WEIGHT}`);
  },
};
const state: Member<(typeof tenantStates)[number]> = {
  schema: { enum: tenantStates },
  read(value, name) {
    const found = tenantStates.find((one) => one === value);
    if (found !== undefined) return found;
    throw new InferenceError("invalid_argument", `${name} must be one of ${tenantStates.join(", ")}`);
  },
};
const members = { weight, models: modelsMember, limits: limitsMember("tenant") };

export const tenantEndpoints = [
  endpoint({
    method: "GET",
    path: "/v2/tenants",
    right: "operator",
    does: "Lists the tenants that operators have made, the newest first.",
    query: pageQuery,
    answers: { 200: { says: "A page of tenants.", shape: () => pageShape(tenantShape()) } },
    refusals: ["unsupported"],
    async handle({ query }, tenants) {
      const { data, hasMore } = await tenants.list(query);
      return jsonReply(listOf(data, hasMore));
    },
  }),
  endpoint({
    method: "POST",
    path: "/v2/tenants",
    right: "operator",
    does: "Makes a tenant. A key may be of a tenant that nobody has made: such a tenant is active and may use all models.",
    members: { id: needed(tenantMember), ...members },
    answers: { 201: { says: "The tenant.", shape: tenantShape } },
    refusals: ["tenant_exists", "outcome_unknown"],
    async handle(asked, tenants) {
      const { id, ...given } = await asked.members();
      return withHeaders(jsonReply(await tenants.make(asked.caller, id, given), 201), {
        location: `/v2/tenants/${id}`,
      });
    },
  }),
  endpoint({
    method: "GET",
    path: "/v2/tenants/:id",
    right: "operator",
    does: "Shows a tenant.",
    answers: { 200: { says: "The tenant.", shape: tenantShape } },
    refusals: ["unsupported", "unknown_tenant"],
    handle: async (asked, tenants) => jsonReply(await tenants.view(asked.segment("id"))),
  }),
  endpoint({
    method: "PATCH",
    path: "/v2/tenants/:id",
    right: "operator",
    does: "Changes the given members of a tenant.",
    members: { ...members, state },
    answers: { 200: { says: "The tenant after the change.", shape: tenantShape } },
    refusals: ["unknown_tenant", "outcome_unknown"],
    async handle(asked, tenants) {
      return jsonReply(await tenants.change(asked.caller, asked.segment("id"), await asked.members()));
    },
  }),
  endpoint({
    method: "DELETE",
    path: "/v2/tenants/:id",
    right: "operator",
    does: "Removes a suspended tenant without keys, with its webhooks, schedules and files.",
    answers: { 204: { says: "The tenant is gone." } },
    refusals: ["unsupported", "unknown_tenant", "tenant_in_use", "outcome_unknown"],
    async handle(asked, tenants) {
      await tenants.remove(asked.caller, asked.segment("id"));
      return noContent;
    },
  }),
];
