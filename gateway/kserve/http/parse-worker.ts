/**
 * Runs in the parsing thread: reads one body after the other, with the same function that the
 * gateway's main thread uses for small ones.
 */
import { parentPort } from "node:worker_threads";
import { InferenceError, type ErrorCode } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { readRequest, type Reading, type ReadRequest } from "./read-request.js";

export interface ParseQuestion {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly reading: Reading;
}

/** A tensor after its way from one thread to another, on which a Buffer becomes a plain array. */
export type SentTensor = Omit<Tensor, "data"> & { readonly data: Uint8Array };

export type ParseAnswer =
  | { readonly kind: "read"; readonly request: ReadRequest; readonly inputs: readonly SentTensor[] }
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly message: string }
  | { readonly kind: "failed"; readonly reason: string };

function answer({ body, reading }: ParseQuestion): ParseAnswer {
  try {
    const { valid, ...request } = readRequest(Buffer.from(body.buffer, body.byteOffset, body.length), reading);
    return { kind: "read", request: { ...request, valid: { ...valid, inputs: [] } }, inputs: valid.inputs };
  } catch (error) {
    if (error instanceof InferenceError) return { kind: "refused", code: error.code, message: error.message };
    return { kind: "failed", reason: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

/**
 * Lists the memory that moves to the main thread without a copy: that of one tensor, or of the
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
  const answered = answer(question);
  parentPort?.postMessage(
    answered,
    answered.kind === "read" ? movable(answered.inputs as Tensor[], question.body) : [],
  );
});
