/** The outcome of a stream, from its final record. */
import { tokenRecord, type TokenRecord } from "../../../contract/generation.js";
import { outcomeOf, storeOutcome, type StoredOutcome } from "../../../contract/outcome.js";
import { fixedError } from "../../../errors.js";

/**
 * The outcome of a stream with a sealed log. It follows from the log alone, so every worker commits
 * the same outcome. A result's body is the final record.
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

/** @returns undefined if this is no final record: a person has changed the log */
function readFinal(record: string): TokenRecord | undefined {
  try {
    const parsed = tokenRecord.parse(JSON.parse(record));
    return parsed.final === true ? parsed : undefined;
  } catch {
    return undefined;
  }
}
