/** `/v2/deliveries`: the messages that Baton has sent to webhooks, and has still to send. */
import { z } from "zod";
import { InferenceError } from "#shared/errors.js";
import { deliveryStates } from "#shared/queue/webhooks/deliveries.js";
import { jsonReply, withHeaders } from "../formats/reply.js";
import type { DeliveryService } from "../service/deliveries.js";
import { endpointsOf } from "./endpoint/endpoint.js";
import { listOf, pageQuery, pageShape } from "./endpoint/page.js";
import { text, type Parameter } from "./endpoint/parameters.js";

const endpoint = endpointsOf<DeliveryService>("inference");

const attemptShape = () =>
  z.strictObject({ at: z.string(), status: z.number().nullable(), error: z.string().nullable(), ms: z.number() });

export const deliveryShape = () =>
  z.strictObject({
    id: z.string(),
    object: z.literal("delivery"),
    event: z.string(),
    job: z.string().nullable(),
    webhook: z.string().nullable(),
    state: z.enum(deliveryStates),
    attempts: z.array(attemptShape()),
    next_attempt_at: z.string().nullable(),
  });

const states: Parameter<readonly string[] | undefined> = {
  schema: { type: "string", description: `of ${deliveryStates.join(", ")}, with commas between several` },
  read: ([given]) => {
    const asked = given?.split(",");
    const wrong = asked?.find((one) => !deliveryStates.some((known) => known === one));
    if (wrong === undefined) return asked;
    const known = deliveryStates.join(", ");
    throw new InferenceError("invalid_argument", `there is no state '${wrong}'; there are: ${known}`);
  },
};

export const deliveryEndpoints = [
  endpoint({
    method: "GET",
    path: "/v2/deliveries",
    right: "read",
    does: "Lists the deliveries, the newest first.",
    query: { ...pageQuery, job: text, webhook: text, state: states },
    answers: { 200: { says: "A page of deliveries.", shape: () => pageShape(deliveryShape()) } },
    async handle({ caller, query }, deliveries) {
      const { job, webhook, state } = query;
      const { data, hasMore, last } = await deliveries.list(caller, query, { job, webhook, states: state });
      return jsonReply({ ...listOf(data, hasMore), last_id: last ?? null });
    },
  }),
  endpoint({
    method: "POST",
    path: "/v2/deliveries/:message/replay",
    right: "jobs",
    does: "Sends a delivery's message once more.",
    members: {},
    mayBeEmpty: true,
    answers: { 202: { says: "The delivery, which is pending again.", shape: deliveryShape } },
    refusals: ["unknown_delivery", "replay_limit", "idempotency_mismatch", "outcome_unknown"],
    async handle(asked, deliveries) {
      const key = asked.idempotencyKey();
      await asked.members();
      const { delivery, isReplayed } = await deliveries.replay(asked.caller, asked.segment("message"), key);
      return withHeaders(jsonReply(delivery, 202), isReplayed ? { "idempotent-replayed": "true" } : {});
    },
  }),
];
