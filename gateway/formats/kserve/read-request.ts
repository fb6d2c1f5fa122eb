/**
 * Reads the request in a body and compares it with the model; no later code refuses a request for
 * its form. Runs in the main thread, and for large bodies in the parsing thread.
 */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { JsonObject } from "#shared/json/parse.js";
import type { Limits } from "../limits.js";
import { parseGenerate } from "./parse-generate.js";
import { parseInfer } from "./parse-infer.js";
import { customParameters, type RequestParameters } from "./parameters.js";
import { InferenceError } from "#shared/errors.js";
import type { ParsedInfer, RequestedOutput } from "./request.js";
import { validateInfer, type Unchecked, type ValidInfer } from "./validate.js";

export interface Reading {
  /** Decides the form of the body. `generate_stream` has the same form as `generate`. */
  readonly path: "infer" | "generate";
  /** The `Inference-Header-Content-Length` header. */
  readonly headerLength: string | undefined;
  readonly model: ServedModel;
  /** Models that a step of a sequence may be for instead, the likeliest first. */
  readonly others: readonly ServedModel[];
  readonly limits: Limits;
}

export interface ReadRequest {
  /** The request's own id; empty if the client gives none. */
  readonly id: string;
  readonly parameters: RequestParameters;
  /** The parameters of a generator, also of one in an ensemble; empty for other models. */
  readonly textParameters: JsonObject;
  /** The outputs as the client named them; empty if the client wants all. */
  readonly requested: readonly RequestedOutput[];
  /** The model of the comparison: 0 for `model`, i + 1 for `others[i]`. */
  readonly against: number;
  readonly valid: ValidInfer;
}

/** @throws InferenceError */
export function readRequest(body: Buffer, reading: Reading): ReadRequest {
  const { path, headerLength, model, limits } = reading;
  if (path === "infer") {
    return compareInfer(parseInfer(body, headerLength, model, limits), reading);
  }
  const parsed = parseGenerate(body, model, limits);
  const isText = model.generator !== undefined || model.samples !== undefined;
  const parameters = customParameters(isText ? {} : parsed.parameters, limits);
  const compared = validateStep({ ...parsed, outputs: [], parameters }, reading);
  return { id: parsed.id, parameters, textParameters: isText ? parsed.parameters : {}, requested: [], ...compared };
}

/** @throws InferenceError */
export function compareInfer(parsed: ParsedInfer, reading: Pick<Reading, "model" | "others">): ReadRequest {
  const { id, parameters, textParameters, outputs } = parsed;
  return { id, parameters, textParameters, requested: outputs, ...validateStep(parsed, reading) };
}

/**
 * Compares a request with its model. A later step of a sequence may be for another version with
 * other inputs. Only Redis knows which version, so this assumes the first version that fits.
 * @throws InferenceError as the model itself refuses the request
 */
function validateStep(
  parsed: Unchecked,
  { model, others }: Pick<Reading, "model" | "others">,
): Pick<ReadRequest, "valid" | "against"> {
  try {
    return { valid: validateInfer(parsed, model), against: 0 };
  } catch (error) {
    if (!parsed.parameters.sequenceStart) {
      for (const [i, other] of others.entries()) {
        const valid = validOrUndefined(parsed, other);
        if (valid?.sequence !== undefined) return { valid, against: i + 1 };
      }
    }
    throw error;
  }
}

function validOrUndefined(parsed: Unchecked, model: ServedModel): ValidInfer | undefined {
  try {
    return validateInfer(parsed, model);
  } catch (error) {
    if (error instanceof InferenceError) return undefined;
    throw error;
  }
}
