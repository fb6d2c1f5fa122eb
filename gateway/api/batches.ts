/** OpenAI's `/v1/batches`: files of requests, which run without a client that waits. */
import { z } from "zod";
import { isObject } from "#shared/json/members.js";
import { batchStatuses } from "../batches/batch.js";
import { jsonReply, withHeaders } from "../formats/reply.js";
import { ParameterError } from "../generation/parameters.js";
import type { BatchOrder, BatchService } from "../service/batches.js";
import { endpointsOf } from "./endpoint/endpoint.js";
import { needed, type Member } from "./endpoint/members.js";
import { listOf, pageQuery, pageShape } from "./endpoint/page.js";

const endpoint = endpointsOf<BatchService>("inference");

const faultShape = () =>
  z.strictObject({ code: z.string(), message: z.string(), line: z.number().nullable(), param: z.null() });

export const batchShape = () =>
  z.strictObject({
    id: z.string(),
    object: z.literal("batch"),
    endpoint: z.string(),
    errors: z.strictObject({ object: z.literal("list"), data: z.array(faultShape()) }).nullable(),
    input_file_id: z.string(),
    completion_window: z.string(),
    status: z.enum(batchStatuses),
    output_file_id: z.string().nullable(),
    error_file_id: z.string().nullable(),
    created_at: z.number(),
    in_progress_at: z.number().nullable(),
    expires_at: z.number(),
    finalizing_at: z.number().nullable(),
    completed_at: z.number().nullable(),
    failed_at: z.number().nullable(),
    expired_at: z.number().nullable(),
    cancelling_at: z.number().nullable(),
    cancelled_at: z.number().nullable(),
    request_counts: z.strictObject({ total: z.number(), completed: z.number(), failed: z.number() }),
    metadata: z.record(z.string(), z.string()).nullable(),
  });

const textEndpoints = ["/v1/chat/completions", "/v1/completions"];
const modelEndpoint = /^\/v2\/models\/[A-Za-z0-9._-]{1,128}(?:\/versions\/\d{1,19})?\/(?:infer|generate)$/;
const windows = /^([1-9]\d{0,6})([smhd])$/;
const units = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const LONGEST_WINDOW_MS = 7 * units.d;
/** OpenAI's limits. */
const metadataLimits = { pairs: 16, name: 64, value: 512 };

const inputFile: Member<string> = {
  schema: { type: "string", description: "the id of a file", minLength: 1 },
  readsAbsence: true,
  read: (value) => {
    if (typeof value === "string" && value !== "") return value;
    throw new ParameterError("input_file_id", "input_file_id must be the id of a file");
  },
};

const endpointOfLines: Member<string> = {
  schema: {
    description: "the path that answers the lines: one of OpenAI's two, or a model's infer or generate",
    anyOf: [{ enum: textEndpoints }, { type: "string", pattern: modelEndpoint.source }],
  },
  readsAbsence: true,
  read: (value) => {
    if (typeof value === "string" && (textEndpoints.includes(value) || modelEndpoint.test(value))) return value;
    const known = [...textEndpoints, "/v2/models/<model>/infer", "/v2/models/<model>/generate"];
    throw new ParameterError("endpoint", `endpoint must be one of ${known.join(", ")}`);
  },
};

/** OpenAI always has `24h`. Baton also takes other numbers of seconds, minutes, hours and days. */
const window: Member<Pick<BatchOrder, "window" | "windowMs">> = {
  schema: { type: "string", description: "a number of s, m, h or d, from 1s to 7d", pattern: windows.source },
  readsAbsence: true,
  read: (window) => {
    if (typeof window !== "string") {
      throw new ParameterError("completion_window", "completion_window must be a text such as 24h");
    }
    const [, count = "", unit = ""] = windows.exec(window) ?? [];
    const windowMs = Number(count) * (units[unit as keyof typeof units] ?? 0);
    if (windowMs > 0 && windowMs <= LONGEST_WINDOW_MS) return { window, windowMs };
    throw new ParameterError(
      "completion_window",
      "completion_window must be a number of s, m, h or d, from 1s to 7d, such as 24h",
    );
  },
};

const metadata: Member<BatchOrder["metadata"]> = {
  schema: {
    type: ["object", "null"],
    description: `at most ${metadataLimits.pairs} texts`,
    maxProperties: metadataLimits.pairs,
    propertyNames: { maxLength: metadataLimits.name },
    additionalProperties: { type: "string", maxLength: metadataLimits.value },
  },
  read: (value) => {
    if (value === null) return null;
    const { pairs, name: longest, value: longestValue } = metadataLimits;
    const entries = isObject(value) ? Object.entries(value) : undefined;
    const fits =
      entries !== undefined &&
      entries.length <= pairs &&
      entries.every(([name, one]) => name.length <= longest && typeof one === "string" && one.length <= longestValue);
    if (fits) return Object.fromEntries(entries) as Readonly<Record<string, string>>;
    throw new ParameterError(
      "metadata",
      `metadata must be an object of at most ${pairs} texts, with names of up to ${longest} characters ` +
        `and values of up to ${longestValue}`,
    );
  },
};

/** The body of `POST /v1/batches`. */
export const orderMembers = {
  input_file_id: needed(inputFile),
  endpoint: needed(endpointOfLines),
  completion_window: needed(window),
  metadata,
};

export const batchEndpoints = [
  endpoint({
    method: "GET",
    path: "/v1/batches",
    right: "read",
    does: "Lists the batches, the newest first.",
    query: pageQuery,
    answers: { 200: { says: "A page of batches.", shape: () => pageShape(batchShape()) } },
    async handle({ caller, query }, batches) {
      const { data, hasMore } = await batches.list(caller, query);
      return jsonReply(listOf(data, hasMore));
    },
  }),
  endpoint({
    method: "POST",
    path: "/v1/batches",
    right: "jobs",
    admits: true,
    does: "Makes a batch, which runs each line of its input file as a request.",
    members: orderMembers,
    answers: { 200: { says: "The batch.", shape: batchShape } },
    refusals: ["batch_limit", "idempotency_mismatch", "outcome_unknown"],
    async handle(asked, batches) {
      const trace = asked.trace("openai");
      const key = asked.idempotencyKey();
      const given = await asked.members();
      const order = {
        endpoint: given.endpoint,
        inputFile: given.input_file_id,
        ...given.completion_window,
        metadata: given.metadata ?? null,
      };
      const { batch, isReplayed } = await batches.make(asked.caller, order, key, asked.budget(), trace);
      return withHeaders(jsonReply(batch), isReplayed ? { "idempotent-replayed": "true" } : {});
    },
  }),
  endpoint({
    method: "GET",
    path: "/v1/batches/:id",
    right: "read",
    does: "Shows a batch.",
    answers: { 200: { says: "The batch.", shape: batchShape } },
    refusals: ["unknown_batch"],
    handle: async (asked, batches) => jsonReply(await batches.find(asked.caller, asked.segment("id"))),
  }),
  endpoint({
    method: "POST",
    path: "/v1/batches/:id/cancel",
    right: "cancel",
    does: "Cancels a batch that has not ended.",
    answers: { 200: { says: "The batch, which ends soon.", shape: batchShape } },
    refusals: ["unknown_batch", "already_ended", "outcome_unknown"],
    handle: async (asked, batches) => jsonReply(await batches.cancel(asked.caller, asked.segment("id"))),
  }),
];
