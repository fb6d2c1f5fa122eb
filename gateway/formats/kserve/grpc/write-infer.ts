/** Writes ModelInferResponse and ModelStreamInferResponse. Tensors are raw bytes, always. */
import type { ErrorCode } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { FieldWriter } from "./wire.js";

/** An answer, or a part of it. */
export interface InferAnswer {
  readonly model: string;
  readonly version: string;
  /** The request's own id; empty if the client gives none. */
  readonly id: string;
  readonly parameters?: Readonly<Record<string, boolean | number | string>>;
  readonly tensors: readonly Tensor[];
}

/** @returns a ModelInferResponse */
export function writeInfer({ model, version, id, parameters = {}, tensors }: InferAnswer): FieldWriter {
  const message = new FieldWriter();
  if (model !== "") message.text(1, model);
  if (version !== "") message.text(2, version);
  if (id !== "") message.text(3, id);
  for (const [name, value] of Object.entries(parameters)) {
    message.bytes(4, entryOf(name, value));
  }
  for (const { name, datatype, shape } of tensors) {
    const output = new FieldWriter();
    output.text(1, name);
    output.text(2, datatype);
    output.packed(3, shape);
    message.message(5, output);
  }
  for (const { data } of tensors) message.bytes(6, data);
  return message;
}

/** The entries of the flags, which each part of each answer has. */
const flags = new Map<string, Buffer>();

/** @param name of a parameter of ours */
function entryOf(name: string, value: boolean | number | string): Buffer {
  const known = typeof value === "boolean" ? flags.get(`${name} ${value}`) : undefined;
  if (known !== undefined) return known;
  const choice = new FieldWriter();
  if (typeof value === "boolean") choice.bool(1, value);
  else if (typeof value === "number") choice.int64(2, value);
  else choice.text(3, value);
  const entry = new FieldWriter();
  entry.text(1, name);
  entry.message(2, choice);
  const bytes = entry.finish();
  if (typeof value === "boolean") flags.set(`${name} ${value}`, bytes);
  return bytes;
}

/** @returns a ModelStreamInferResponse */
export function writePart(answer: InferAnswer): Buffer {
  const message = new FieldWriter();
  message.message(2, writeInfer(answer));
  return message.finish();
}

/** A refusal or a failure in a stream. */
export interface StreamFault {
  readonly message: string;
  readonly code: ErrorCode;
  /** Model and version as the client named them; absent before the request was accepted. */
  readonly accepted?: { readonly model: string; readonly version: string } | undefined;
  readonly id: string;
  /** Absent if the client asks for no index. */
  readonly index?: number | undefined;
}

/**
 * Writes an error of a request in a stream. Triton's clients read `error_message` alone; the code
 * is a parameter, because a message has no status.
 */
export function writeFault({ message: text, code, accepted, id, index }: StreamFault): Buffer {
  const message = new FieldWriter();
  message.text(1, text);
  const parameters = {
    ...(accepted !== undefined && { triton_final_response: true }),
    ...(index !== undefined && { response_index: index }),
    baton_code: code,
  };
  const { model, version } = accepted ?? { model: "", version: "" };
  message.message(2, writeInfer({ model, version, id, parameters, tensors: [] }));
  return message.finish();
}
