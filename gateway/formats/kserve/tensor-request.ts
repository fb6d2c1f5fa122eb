/** Makes the request to a tensor model from the parsed body, for `infer` and `generate`. */
import type { ServedModel } from "#shared/contract/announcement.js";
import { startRequiredMessage } from "#shared/contract/sequence.js";
import { InferenceError } from "#shared/errors.js";
import type { InferenceRequest } from "../../admission/inference.js";
import { queueTermsOf } from "./queue-policy.js";
import { validateInfer, type ValidInfer } from "./validate.js";
import type { ModelCall } from "./call.js";
import type { ReadRequest } from "./read-request.js";
import { readStepSampling } from "./text-generation.js";

export function tensorRequest(
  {
    tenant,
    budget,
    model,
    version,
    others,
    limits,
    idempotencyKey,
    client,
  }: Pick<ModelCall, "tenant" | "budget" | "model" | "version" | "others" | "limits" | "idempotencyKey" | "client">,
  read: ReadRequest,
): InferenceRequest {
  const { id, parameters, textParameters, requested, against, valid } = read;
  const queue = queueTermsOf(model, parameters);
  const requestFor = (chosen: ServedModel, { inputs, outputs, sequence }: ValidInfer): InferenceRequest => ({
    model: chosen,
    tenant,
    budget,
    // Only an existing sequence continues under another version than the version for new sequences.
    sequence: sequence && (chosen === model ? sequence : { ...sequence, mayBegin: false }),
    inputs,
    outputs: outputs.map(({ name }) => name),
    parameters: parameters.custom,
    sampling: chosen.samples && readStepSampling(textParameters, chosen.samples, idempotencyKey),
    idempotencyKey,
    client,
    deadlineMs: queue?.takesTimeout === true ? limits.defaultDeadlineMs : parameters.deadlineMs,
    queue,
    under: (pinned) => {
      // For Triton, the sequences of two versions are independent.
      if (version !== undefined && pinned.version !== version && sequence !== undefined) {
        throw new InferenceError("sequence_start_required", startRequiredMessage(model, sequence.id), {
          reason: "never_started",
        });
      }
      return requestFor(pinned, validateInfer({ id, inputs, outputs: requested, parameters }, pinned));
    },
  });
  return requestFor(against === 0 ? model : (others[against - 1] ?? model), valid);
}
