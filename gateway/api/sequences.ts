/** `/v2/models/<m>[/versions/<v>]/sequences`: the operations on sequences as a whole. */
import { z } from "zod";
import type { CorrelationId } from "#shared/contract/sequence.js";
import { InferenceError } from "#shared/errors.js";
import { sequenceStates } from "#shared/queue/sequences/view.js";
import { readCorrelationId } from "../admission/request-terms.js";
import { checkSequenceId } from "../formats/kserve/validate.js";
import { stateBodyLimit } from "../formats/limits.js";
import { jsonReply } from "../formats/reply.js";
import { pathOf } from "../http/router.js";
import { readSequenceId, type Change, type Named } from "../sequences/sequence-id.js";
import type { SequenceService } from "../service/sequences.js";
import type { Asked } from "./endpoint/asked.js";
import { endpointsOf } from "./endpoint/endpoint.js";
import { needed, type Member } from "./endpoint/members.js";
import { forModel, modelOf } from "./endpoint/model-path.js";
import { oneOf, pageSize, text, type Parameter } from "./endpoint/parameters.js";

const endpoint = endpointsOf<SequenceService>("inference");

const BYTES = "application/octet-stream";

export const sequenceShape = () =>
  z.strictObject({
    // An integer goes up to 2^64-1, and JavaScript's own parser rounds it.
    sequence_id: z.union([z.number(), z.string()]),
    state: z.enum(sequenceStates),
    step: z.number(),
    waiting: z.number(),
    last_step_at: z.string().nullable(),
    idle_deadline: z.string().nullable(),
    worker: z.string().nullable(),
    version: z.string(),
    state_bytes: z.number(),
    checkpoints: z.array(z.number()),
  });

export const sequencesShape = () =>
  z.strictObject({ sequences: z.array(sequenceShape()), total: z.number().optional(), next: z.string().optional() });

/** How to read an id of digits alone in a path. `readSequenceId` refuses any other word. */
const type: Parameter<string | undefined> = {
  ...text,
  schema: { type: "string", enum: ["string", "uint64"], description: "how to read an id of digits" },
};

const stepSchema = { type: "integer", minimum: 1 };
const step: Member<number> = { schema: stepSchema, read: readStep };
const stepOfQuery: Parameter<number | undefined> = {
  schema: stepSchema,
  read: ([given]) => (given === undefined ? undefined : readStep(/^\d+$/.test(given) ? Number(given) : given)),
};
const prefixOfQuery: Parameter<string | undefined> = { ...text, says: "the beginning of the ids" };
const newId: Member<CorrelationId> = {
  schema: { anyOf: [{ type: "integer", minimum: 0 }, { type: "string" }] },
  read: readCorrelationId,
};

/** The refusals of a path to a single sequence; `unsupported` is an id that is too long. */
const ofOne = ["unknown_model", "model_unavailable", "sequence_unknown", "unsupported"] as const;

/** A request about a single sequence. */
type AskedForOne = Pick<Asked, "caller" | "incoming" | "segment" | "idempotencyKey"> & {
  readonly query: { readonly type: string | undefined };
};

export const sequenceEndpoints = forModel(
  endpoint({
    method: "GET",
    path: "/v2/models/:model/sequences",
    right: "read",
    does: "Lists the live sequences of a model, in no order.",
    query: { limit: pageSize(100, 1_000), after: text, state: oneOf(sequenceStates), prefix: prefixOfQuery },
    answers: {
      200: {
        says: "A page; `next` is the `after` of the next page. Without tenants, the first page's `total` is the model's number.",
        shape: sequencesShape,
      },
    },
    refusals: ["unknown_model", "model_unavailable"],
    handle: async (asked, sequences) => jsonReply(await sequences.list(asked.caller, modelOf(asked), asked.query)),
  }),
  endpoint({
    method: "GET",
    path: "/v2/models/:model/sequences/:id",
    right: "read",
    does: "Shows a sequence.",
    query: { type },
    answers: { 200: { says: "The sequence.", shape: sequenceShape } },
    refusals: [...ofOne],
    handle: async (asked, sequences) => jsonReply(await sequences.describe(named(asked, sequences))),
  }),
  endpoint({
    method: "DELETE",
    path: "/v2/models/:model/sequences/:id",
    right: "sequences",
    does: "Ends a sequence. Steps from before still run.",
    query: { type },
    answers: { 200: { says: "The sequence as it stood before.", shape: sequenceShape } },
    refusals: [...ofOne, "idempotency_mismatch", "outcome_unknown"],
    handle: async (asked, sequences) => jsonReply(await sequences.end(change(asked, sequences))),
  }),
  endpoint({
    method: "POST",
    path: "/v2/models/:model/sequences/:id/fork",
    right: "sequences",
    does: "Makes a second sequence that continues from the state that a sequence has now, or had after a step.",
    query: { type },
    members: { sequence_id: needed(newId), step },
    answers: { 200: { says: "The new sequence.", shape: sequenceShape } },
    refusals: [
      ...ofOne,
      "sequence_exists",
      "sequence_limit",
      "sequence_busy",
      "checkpoint_gone",
      "state_lost",
      "state_corrupt",
      "idempotency_mismatch",
      "outcome_unknown",
    ],
    async handle(asked, sequences) {
      const from = change(asked, sequences);
      const given = await asked.members();
      return jsonReply(await sequences.copies.fork(from, given.sequence_id, given.step));
    },
  }),
  endpoint({
    method: "POST",
    path: "/v2/models/:model/sequences/:id/rewind",
    right: "sequences",
    does: "Takes a sequence back to an earlier step.",
    query: { type },
    members: { step: needed(step) },
    answers: { 200: { says: "The sequence as it stands then.", shape: sequenceShape } },
    refusals: [...ofOne, "sequence_busy", "checkpoint_gone", "idempotency_mismatch", "outcome_unknown"],
    async handle(asked, sequences) {
      const sequence = change(asked, sequences);
      const given = await asked.members();
      return jsonReply(await sequences.rewind(sequence, given.step));
    },
  }),
  endpoint({
    method: "GET",
    path: "/v2/models/:model/sequences/:id/state",
    right: "sequences",
    does: "Exports the state that a sequence has now, or had after a step.",
    query: { type, step: stepOfQuery },
    answers: { 200: { says: "The state, as PUT takes it.", mediaType: BYTES } },
    refusals: [...ofOne, "sequence_busy", "checkpoint_gone", "state_lost", "state_corrupt"],
    async handle(asked, sequences) {
      const frame = await sequences.copies.export(named(asked, sequences), asked.query.step);
      return { status: 200, headers: { "content-type": BYTES }, body: [frame] };
    },
  }),
  endpoint({
    method: "PUT",
    path: "/v2/models/:model/sequences/:id/state",
    right: "sequences",
    does: "Makes a sequence from an exported state.",
    query: { type },
    body: BYTES,
    answers: { 200: { says: "The new sequence.", shape: sequenceShape } },
    refusals: [
      ...ofOne,
      "frame_corrupt",
      "frame_mismatch",
      "sequence_exists",
      "sequence_limit",
      "idempotency_mismatch",
      "outcome_unknown",
    ],
    async handle(asked, sequences) {
      const to = change(asked, sequences);
      // Refuses a wrong id before the body arrives, because the body may be long.
      checkSequenceId(to.model, to.id);
      const terms = { maxBytes: stateBodyLimit(asked.limits), jsonBytes: 0 };
      return jsonReply(await asked.body(terms, (bytes) => sequences.copies.import(to, bytes)));
    },
  }),
);

/**
 * Finds the model first, so that a path to an unknown model gives 404 whatever its id is.
 * @throws InferenceError
 */
function named(asked: AskedForOne, sequences: SequenceService): Named {
  const model = modelOf(asked);
  // `readSequenceId` decodes the segment itself, because it refuses a wrong escape.
  const segments = pathOf(asked.incoming.url ?? "").split("/");
  const id = segments[model.version === undefined ? 5 : 7] ?? "";
  return { ...sequences.ofModel(asked.caller, model), id: readSequenceId(id, asked.query.type) };
}

/** @throws InferenceError */
function change(asked: AskedForOne, sequences: SequenceService): Change {
  const idempotencyKey = asked.idempotencyKey();
  return { ...named(asked, sequences), idempotencyKey };
}

function readStep(value: unknown): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 1) return value;
  throw new InferenceError("invalid_argument", "step must be an integer of at least 1, counted from the START");
}
