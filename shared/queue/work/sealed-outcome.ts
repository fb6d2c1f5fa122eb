/** What the final record of a stream says, as the outcome that is committed. */
import { tokenRecord, type TokenRecord } from "../../contract/generation.js";
import { outcomeOf, storeOutcome, type StoredOutcome } from "../../contract/outcome.js";
import { fixedError } from "../../errors.js";

/**
 * The outcome of a stream whose log is sealed. It follows from the log alone, so it is the same
 * whichever worker commits it. A result's body is the final record.
 * @param records the whole log, or its end
 */
export function sealedOutcome(records: readonly string[]): StoredOutcome {
  const last = records.at(-1);
  const final = last === undefined ? undefined : readFinal(last);
  if (last === undefined || final === undefined) return storeOutcome(outcomeOf(fixedError("request_lost", "logGone")));
  return final.error === undefined
    ? { kind: "result", body: Buffer.from(last) }
    : storeOutcome({ kind: "error", ...final.error });
}

/** @returns undefined for what is no final record: the log was changed from outside. */
function readFinal(record: string): TokenRecord | undefined {
  try {
    const parsed = tokenRecord.parse(JSON.parse(record));
    return parsed.final === true ? parsed : undefined;
  } catch {
    return undefined;
  }
}
