/** The paths to a model: their two spellings, and the model that they name. */
import { InferenceError } from "#shared/errors.js";
import type { ModelName } from "../../fleet/models.js";
import type { Asked } from "./asked.js";
import type { Endpoint } from "./endpoint.js";

const toLatest = "/v2/models/:model";
const toVersion = "/v2/models/:model/versions/:version{[0-9]+}";

/**
 * Gives endpoints both spellings of their paths: to the model's latest version, and to a named
 * version.
 * @param endpoints whose paths begin with `/v2/models/:model`
 */
export function forModel<S>(...endpoints: readonly Endpoint<S>[]): readonly Endpoint<S>[] {
  return endpoints.flatMap((one) => [one, { ...one, path: one.path.replace(toLatest, toVersion) }]);
}

/**
 * Reads the model's name from the path, which Hono has decoded once. A remaining escape, slash or
 * control character names no model.
 * @throws InferenceError `unknown_model`
 */
export function modelOf(asked: Pick<Asked, "segment">): ModelName {
  const model = asked.segment("model");
  if (/^[A-Za-z0-9._-]{1,128}$/.test(model) && !model.includes("..")) {
    return { model, version: asked.segment("version") || undefined };
  }
  throw new InferenceError("unknown_model", `Request for unknown model: '${model}' is not found`);
}
