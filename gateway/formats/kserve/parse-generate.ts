/**
 * Parses the body of `generate` and `generate_stream`: one flat object, whose members are the
 * model's inputs by name, and otherwise its parameters. Members of `parameters` count as members of
 * the whole object.
 */
import { fullShape, type ServedModel, type TensorSpec } from "#shared/contract/announcement.js";
import { parseJson, type JsonObject, type JsonValue } from "#shared/json/parse.js";
import { TensorData } from "#shared/json/tensor-data.js";
import { InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { jsonToRaw } from "./tensors-json.js";
import type { Limits } from "../limits.js";
import { asString, optionalObject, parseRequestJson } from "#shared/json/members.js";
import { requestPrefix } from "./request.js";

export interface ParsedGenerate {
  /** The request's own id; empty if the client gives none. */
  readonly id: string;
  readonly inputs: readonly Tensor[];
  /** All members except inputs. */
  readonly parameters: JsonObject;
}

/** @throws InferenceError */
export function parseGenerate(body: Buffer, model: ServedModel, limits: Limits): ParsedGenerate {
  const names = new Set(model.inputs.map(({ name }) => name));
  const isData = (name: string, depth: number, branch: string): boolean =>
    names.has(name) && (depth === 1 ? name !== "parameters" : depth === 2 && branch === "parameters");
  const request = parseRequestJson(body, (bytes) => parseJson(bytes, isData));
  const id = request["id"] === undefined || names.has("id") ? "" : asString(request["id"], "id");
  const inputs = new Map<string, Tensor>();
  const parameters = Object.create(null) as JsonObject;
  const read = (members: JsonObject): void => {
    for (const name in members) {
      const value = members[name] as JsonValue;
      const spec = model.inputs.find((input) => input.name === name);
      if (spec === undefined) parameters[name] = value;
      else if (inputs.has(name)) {
        throw new InferenceError("invalid_argument", `${requestPrefix(id)}input '${name}' already exists in request`);
      } else inputs.set(name, tensorOf(spec, value, model, limits));
    }
  };
  const { parameters: _, ...members } = request;
  read(members);
  read(optionalObject(request, "parameters") ?? {});
  return { id, inputs: [...inputs.values()], parameters };
}

function tensorOf(spec: TensorSpec, value: JsonValue, model: ServedModel, limits: Limits): Tensor {
  const { name, datatype } = spec;
  if (!(value instanceof TensorData) || value.isNested || value.holdsOther) throw notConvertible(name);
  const { count } = value;
  if (count === 0) return { name, datatype, shape: [], data: Buffer.alloc(0) };
  const shape = fitShape(name, fullShape(model, spec), count);
  return { name, datatype, shape, data: jsonToRaw(name, datatype, value, count, limits.jsonBytes) };
}

/**
 * Returns a shape for `count` elements. Of several variable dimensions the innermost takes all that
 * the fixed dimensions leave, and the rest are 1.
 * @param dims -1 is a variable dimension
 * @throws InferenceError if no shape fits
 */
export function fitShape(input: string, dims: readonly number[], count: number): number[] {
  let left = count;
  for (const dim of dims) {
    if (dim === -1) continue;
    if (dim === 0 || left % dim !== 0) throw notConvertible(input);
    left /= dim;
  }
  const innermost = dims.lastIndexOf(-1);
  if (innermost === -1 && left !== 1) throw notConvertible(input);
  return dims.map((dim, index) => (dim !== -1 ? dim : index === innermost ? left : 1));
}

function notConvertible(input: string): InferenceError {
  return new InferenceError(
    "invalid_argument",
    `The schema can not convert input '${input}' to tensor with proper shape`,
  );
}
