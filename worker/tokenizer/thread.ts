/**
 * The start of a tokenizer's thread. The tokenizer has a thread of its own, because a long encoding
 * must delay neither the worker's heartbeat nor the model.
 */
import { parentPort, workerData } from "node:worker_threads";
import { fixedError, InferenceError } from "#shared/errors.js";
import { PromptEncoder } from "./prompt.js";
import type { EncodeRequest, TokenizerMessage, TokenizerOptions } from "./protocol.js";

function post(message: TokenizerMessage): void {
  parentPort?.postMessage(message, message.kind === "encoded" ? [message.tokens.buffer] : []);
}

function answer(encoder: PromptEncoder, request: EncodeRequest): TokenizerMessage {
  try {
    return { kind: "encoded", tokens: encoder.encode(request) };
  } catch (error) {
    const { code, message } = error instanceof InferenceError ? error : fixedError("internal", "tokenizer");
    return { kind: "refused", code, message };
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
