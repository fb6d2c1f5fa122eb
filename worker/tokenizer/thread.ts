/** A tokenizer's own thread: a prompt that takes long to encode must stall neither the leases nor the model. */
import { parentPort, workerData } from "node:worker_threads";
import { InferenceError } from "#shared/errors.js";
import { PromptEncoder } from "./prompt.js";
import type { EncodeRequest, TokenizerMessage, TokenizerOptions } from "./protocol.js";

function post(message: TokenizerMessage): void {
  parentPort?.postMessage(message, message.kind === "encoded" ? [message.tokens.buffer] : []);
}

function answer(encoder: PromptEncoder, request: EncodeRequest): TokenizerMessage {
  try {
    return { kind: "encoded", tokens: encoder.encode(request) };
  } catch (error) {
    if (error instanceof InferenceError) return { kind: "refused", code: error.code, message: error.message };
    return { kind: "refused", code: "internal", message: "the prompt could not be tokenised" };
  }
}

try {
  const encoder = new PromptEncoder(workerData as TokenizerOptions);
  post({ kind: "ready" });
  parentPort?.on("message", (request: EncodeRequest) => {
    post(answer(encoder, request));
  });
} catch (error) {
  post({ kind: "failed", reason: error instanceof Error ? error.message : String(error) });
}
