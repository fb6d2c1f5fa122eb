/** The effect of a stream's end on its entry, its outcome and its conversation. */
import { tokenRecord, type TokenRecord } from "#shared/contract/generation.js";
import { historyTensor } from "#shared/contract/states.js";
import { outcomeOf, readOutcome, storeOutcome, type StoredOutcome } from "#shared/contract/outcome.js";
import { InferenceError } from "#shared/errors.js";
import type { Settled } from "../lane/settle.js";
import type { Held } from "../lane/holdings.js";
import { sealedOutcome } from "#shared/queue/work/commit/sealed-outcome.js";
import { encodeCheckpoint, nameRun } from "#shared/contract/checkpoint.js";

/** @returns the final record of a stream that ends with this error */
export function errorRecord(index: number, { code, message }: InferenceError): string {
  const reason = code === "cancelled" || code === "expired" ? code : "error";
  return JSON.stringify({ index, choices: [], final: true, reason, error: { code, message } } satisfies TokenRecord);
}

/**
 * The end of a stream with a result.
 * @param history prompt and output of a conversation's turn; undefined leaves the conversation as
 * it is
 */
export function succeeded({ delivery }: Held, outcome: StoredOutcome, history: Int32Array | undefined): Settled {
  if (delivery.sequence === undefined || history === undefined) return unchanged(delivery, outcome);
  const checkpoint = encodeCheckpoint(nameRun(delivery.entry), [historyTensor(history)]);
  const state = { action: "put", version: checkpoint.version, checkpoint: checkpoint.frame } as const;
  return { delivery, outcome, state, deadReason: undefined, checkpoint };
}

/**
 * The end of a stream that failed or was cancelled. Such a turn has no effect on its conversation,
 * which continues from the turn before.
 */
export function failed({ delivery }: Held, error: InferenceError): Settled {
  const settled = unchanged(delivery, storeOutcome(outcomeOf(error)));
  if (error.code === "poison_request") return { ...settled, state: { action: "fail" }, deadReason: error.code };
  return settled;
}

/**
 * The end of a stream whose worker wrote the final record and died before the commit. The
 * settlement is that of the dead worker, so a failure keeps its consequences.
 */
export function sealed(held: Held, records: readonly string[], history: Int32Array | undefined): Settled {
  const stored = sealedOutcome(records);
  const outcome = readOutcome(stored.kind, stored.body);
  if (outcome.kind === "result") return succeeded(held, stored, history);
  return failed(held, new InferenceError(outcome.code, outcome.message));
}

/** Why the first choice of a whole log ended; undefined if the log does not say it. */
export function finishIn(records: readonly string[]): "stop" | "length" | undefined {
  for (const record of records.toReversed()) {
    if (!record.includes("finish_reason")) continue;
    try {
      const { choices } = tokenRecord.parse(JSON.parse(record));
      const ended = choices.find(({ index, finish_reason }) => index === 0 && finish_reason !== undefined);
      if (ended !== undefined) return ended.finish_reason;
    } catch {
      // A person has changed the log.
    }
  }
  return undefined;
}

function unchanged(delivery: Held["delivery"], outcome: StoredOutcome): Settled {
  const state = { action: delivery.start ? "drop" : "keep" } as const;
  return { delivery, outcome, state, deadReason: undefined, checkpoint: undefined };
}
