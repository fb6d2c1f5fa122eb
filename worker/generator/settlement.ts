/** What a stream's end means for its entry, its outcome and its conversation. */
import type { TokenRecord } from "#shared/contract/generation.js";
import { outcomeOf, readOutcome, storeOutcome, type StoredOutcome } from "#shared/contract/outcome.js";
import { InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import type { Settled } from "../batch/execute.js";
import type { Held } from "../intake/hand.js";
import { sealedOutcome } from "../queue/progress.js";
import { encodeCheckpoint } from "../sequence/checkpoint.js";

/** Ends a stream that cannot go on. */
export function errorRecord(index: number, { code, message }: InferenceError): string {
  const reason = code === "cancelled" || code === "expired" ? code : "error";
  return JSON.stringify({ index, choices: [], final: true, reason, error: { code, message } } satisfies TokenRecord);
}

/** @param history prompt and output of a conversation's turn; without it the conversation stays as it was. */
export function succeed({ delivery }: Held, outcome: StoredOutcome, history: Int32Array | undefined): Settled {
  if (delivery.sequence === undefined || history === undefined) return unchanged(delivery, outcome);
  const checkpoint = encodeCheckpoint(delivery.entry, [historyTensor(history)]);
  const state = { action: "put", checkpoint: checkpoint.frame } as const;
  return { delivery, outcome, state, deadReason: undefined, checkpoint };
}

/** A turn that fails, or was cancelled, has not happened: the conversation goes on from the turn before. */
export function failed({ delivery }: Held, error: InferenceError): Settled {
  const settled = unchanged(delivery, storeOutcome(outcomeOf(error)));
  if (error.code === "poison_request") return { ...settled, state: { action: "fail" }, deadReason: error.code };
  return settled;
}

/** As its own worker, which wrote the final record and then ended, would have settled it: a failure keeps its consequences. */
export function sealed(held: Held, records: readonly string[], history: Int32Array | undefined): Settled {
  const stored = sealedOutcome(records);
  const outcome = readOutcome(stored.kind, stored.body);
  if (outcome.kind === "result") return succeed(held, stored, history);
  return failed(held, new InferenceError(outcome.code, outcome.message));
}

function unchanged(delivery: Held["delivery"], outcome: StoredOutcome): Settled {
  const state = { action: delivery.start ? "drop" : "keep" } as const;
  return { delivery, outcome, state, deadReason: undefined, checkpoint: undefined };
}

/** A conversation's checkpoint is its tokens: a few bytes each, and any worker computes the caches from them. */
function historyTensor(tokens: Int32Array): Tensor {
  const data = Buffer.from(tokens.buffer, tokens.byteOffset, tokens.byteLength);
  return { name: "history", datatype: "INT32", shape: [tokens.length], data };
}

export function historyOf(tensors: readonly Tensor[] | undefined): Int32Array | undefined {
  const data = tensors?.[0]?.data;
  return data && Int32Array.from({ length: data.length / 4 }, (_, i) => data.readInt32LE(4 * i));
}
