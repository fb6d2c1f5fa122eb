/** The parsing thread's own end: one body after the other, as the gateway would read them itself. */
import { parentPort } from "node:worker_threads";
import { InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import type { ParseAnswer, ParseQuestion } from "./parse-protocol.js";
import { readRequest } from "./read-request.js";

function answer({ body, reading }: ParseQuestion): ParseAnswer {
  try {
    const { valid, ...request } = readRequest(Buffer.from(body.buffer, body.byteOffset, body.length), reading);
    return { kind: "read", request: { ...request, valid: { ...valid, inputs: [] } }, inputs: valid.inputs };
  } catch (error) {
    if (error instanceof InferenceError) return { kind: "refused", code: error.code, message: error.message };
    return { kind: "failed", reason: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

/** Memory that a tensor has for itself, or shares with the body, is handed on without a copy. */
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
