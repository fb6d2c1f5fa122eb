/** The ids of sequences, and the paths that they are in. */
import type { Sequence } from "../../gateway/answers.js";

/** An integer beyond 2^53 is a bigint. */
export type SequenceId = Sequence["sequence_id"] | bigint;

export function sequencesPath(model: string): string {
  return `/v2/models/${encodeURIComponent(model)}/sequences`;
}

/**
 * @param id in digits for an integer, or the text of an id
 * @param isText whether digits are a text
 * @param below the path below the sequence, such as `/fork`
 */
export function sequencePath(model: string, id: string, isText: boolean, below = ""): string {
  return `${sequencesPath(model)}/${encodeURIComponent(id)}${below}${isText ? "?type=string" : ""}`;
}

/** Whether an id must be marked as a text, because its digits would be read as an integer. */
export function isDigitText(id: SequenceId): boolean {
  return typeof id === "string" && /^\d+$/.test(id);
}

/** @param isText whether digits are a text, as in the sequence's siblings */
export function readId(text: string, isText: boolean): SequenceId {
  if (isText || !/^\d+$/.test(text)) return text;
  const id = BigInt(text);
  return id <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(id) : id;
}

/** Integers come before texts, each in their order. */
export function compareIds(a: SequenceId, b: SequenceId): number {
  if (typeof a === "string" || typeof b === "string") {
    if (typeof a === typeof b) return String(a).localeCompare(String(b));
    return typeof a === "string" ? 1 : -1;
  }
  return a < b ? -1 : a > b ? 1 : 0;
}
