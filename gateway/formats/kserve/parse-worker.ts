/**
 * Runs in the parsing thread: reads one body after the other, or prints one tensor after the other,
 * with the same functions that the gateway's main thread uses for small bodies and tensors.
 */
import { parentPort } from "node:worker_threads";
import { InferenceError, type ErrorCode } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { readRequest, type Reading, type ReadRequest } from "./read-request.js";
import { rawToJson } from "./tensors-json.js";

export type ParseQuestion =
  | { readonly kind: "read"; readonly body: Uint8Array<ArrayBuffer>; readonly reading: Reading }
  | { readonly kind: "print"; readonly tensor: SentTensor };

/** A tensor between threads. A Buffer arrives there as a plain array. */
export type SentTensor = Omit<Tensor, "data"> & { readonly data: Uint8Array };

export type ParseAnswer =
  | { readonly kind: "read"; readonly request: ReadRequest; readonly inputs: readonly SentTensor[] }
  /** `text` is UTF-8. */
  | { readonly kind: "printed"; readonly text: Uint8Array<ArrayBuffer> }
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly message: string }
  | { readonly kind: "failed"; readonly reason: string };

function answer(question: ParseQuestion): [ParseAnswer, ArrayBuffer[]] {
  try {
    return question.kind === "read" ? read(question) : printed(question);
  } catch (error) {
    if (error instanceof InferenceError) return [{ kind: "refused", code: error.code, message: error.message }, []];
    return [{ kind: "failed", reason: error instanceof Error ? (error.stack ?? error.message) : String(error) }, []];
  }
}

function read({ body, reading }: Extract<ParseQuestion, { kind: "read" }>): [ParseAnswer, ArrayBuffer[]] {
  const { valid, ...request } = readRequest(asBuffer(body), reading);
  const { inputs } = valid;
  return [{ kind: "read", request: { ...request, valid: { ...valid, inputs: [] } }, inputs }, movable(inputs, body)];
}

function printed({ tensor }: Extract<ParseQuestion, { kind: "print" }>): [ParseAnswer, ArrayBuffer[]] {
  const text = new TextEncoder().encode(rawToJson({ ...tensor, data: asBuffer(tensor.data) }));
  return [{ kind: "printed", text }, [text.buffer]];
}

function asBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}

/**
 * Lists the memory that moves to the main thread without a copy: the memory of a tensor or of the
 * body.
 */
function movable(inputs: readonly Tensor[], body: Uint8Array): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  for (const { data } of inputs) {
    const { buffer } = data;
    const isOwn = data.length === buffer.byteLength || buffer === body.buffer;
    if (isOwn && buffer instanceof ArrayBuffer) buffers.add(buffer);
  }
  return [...buffers];
}

parentPort?.on("message", (question: ParseQuestion) => {
  const [answered, moved] = answer(question);
  parentPort?.postMessage(answered, moved);
});
