/** `outputs`: which results the client wants, and each one's encoding. */
import type { JsonObject } from "#shared/json/parse.js";
import { InferenceError } from "#shared/errors.js";
import { asArray, asBoolean, asString, isObject, optionalObject, required, unparsable } from "./members.js";
import { sharedMemoryDisabled } from "./parse-inputs.js";

export interface RequestedOutput {
  readonly name: string;
  readonly binary: boolean;
}

/** Empty where the request names none: then it gets all. `binary_data_output` has no say over an output that is named. */
export function parseOutputs(request: JsonObject, requestPrefix: string): RequestedOutput[] {
  const list = request["outputs"];
  if (list === undefined) return [];
  const names = new Set<string>();
  return asArray(list, "outputs").map((item) => {
    if (!isObject(item)) throw unparsable("outputs", "object");
    const name = asString(required(item, "name"), "name");
    if (names.has(name)) {
      throw new InferenceError("invalid_argument", `${requestPrefix}output '${name}' already exists in request`);
    }
    names.add(name);
    return { name, binary: isBinary(name, optionalObject(item, "parameters")) };
  });
}

function isBinary(name: string, parameters: JsonObject | undefined): boolean {
  if (parameters === undefined) return false;
  if (parameters["shared_memory_region"] !== undefined) throw sharedMemoryDisabled();
  if (parameters["classification"] !== undefined) {
    throw new InferenceError("unsupported", `classification of output '${name}' is not supported`);
  }
  const binary = parameters["binary_data"];
  return binary === undefined ? false : asBoolean(binary, "binary_data");
}
