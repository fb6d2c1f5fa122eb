/** `/v2/usage`: what tenants have used. */
import { z } from "zod";
import { InferenceError } from "#shared/errors.js";
import { jsonReply } from "../formats/reply.js";
import { usageGroups, type UsageGroup, type UsageService } from "../service/usage.js";
import { endpointsOf } from "./endpoint/endpoint.js";
import { tenantParameter } from "./endpoint/owner-members.js";
import { text, type Parameter } from "./endpoint/parameters.js";

const endpoint = endpointsOf<UsageService>("statistics");

const sumsShape = () =>
  z.strictObject({
    requests: z.int(),
    steps: z.int(),
    tokens_in: z.int(),
    tokens_out: z.int(),
    compute_ms: z.number(),
    bytes_in: z.int(),
    bytes_out: z.int(),
    refused: z.int(),
  });
const rowShape = () =>
  sumsShape().extend({
    object: z.literal("usage"),
    tenant: z.string(),
    day: z.string().optional(),
    key: z.string().nullable().optional(),
    model: z.string().optional(),
  });
const usageShape = () =>
  z.strictObject({
    object: z.literal("list"),
    data: z.array(rowShape()),
    totals: sumsShape(),
    last_tenant: z.string().nullable(),
    has_more: z.boolean(),
  });

const day = { ...text, schema: { type: "string", format: "date" } };
const group: Parameter<readonly UsageGroup[]> = {
  schema: { type: "string", default: usageGroups.join(",") },
  says: `Each row is for one of these: some of ${usageGroups.join(", ")}, comma-separated.`,
  read([given], name) {
    if (given === undefined) return usageGroups;
    const words = given.split(",");
    const found = usageGroups.filter((one) => words.includes(one));
    if (found.length === words.length) return found;
    throw new InferenceError("invalid_argument", `${name} must be some of ${usageGroups.join(", ")}, not '${given}'`);
  },
};

export const usageEndpoints = [
  endpoint({
    method: "GET",
    path: "/v2/usage",
    right: "admin",
    does: "Shows the usage of the tenant, or for an operator of all tenants.",
    query: { from: day, to: day, group, tenant: tenantParameter, after: text },
    answers: { 200: { says: "A page of whole tenants, and its sums.", shape: usageShape } },
    refusals: ["unsupported", "insufficient_scope"],
    async handle({ caller, query }, usage) {
      const { data, totals, lastTenant, hasMore } = await usage.read(caller, query);
      return jsonReply({ object: "list", data, totals, last_tenant: lastTenant ?? null, has_more: hasMore });
    },
  }),
];
