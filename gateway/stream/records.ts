/**
 * Token records as text. These functions read a record's kind without parsing it, because every
 * event of every stream passes here.
 */
import { tokenRecord, type TokenRecord } from "#shared/contract/generation.js";
import type { Outcome } from "#shared/contract/outcome.js";
import type { StreamRecord } from "./open-stream.js";

/**
 * Matches a whole record that says one text of choice 0 and nothing else; captures index and text.
 * Every match is valid JSON.
 */
const plain =
  // oxlint-disable-next-line no-control-regex -- they are what JSON forbids in a string
  /^\{"index":(0|[1-9]\d{0,8}),"choices":\[\{"index":0,"text":("[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"),"tokens":\[(?:(?:0|[1-9]\d{0,8})(?:,(?:0|[1-9]\d{0,8}))*)?\]\}\]\}$/;

/**
 * Describes a record from the log, in which its index is its place.
 * @param note the text of the worker's timings, which belongs to the final record
 */
export function recordOf(index: number, json: string, note?: string): StreamRecord {
  const plainText = plain.exec(json)?.[2];
  const final = plainText === undefined && isFinal(json);
  const record = { index, json, final, plainText };
  return final && note !== undefined ? { ...record, note } : record;
}

/**
 * Describes a message as the record that it claims to be.
 * @returns undefined if the message claims no index: such a message, which may be empty, only says
 * that there is something to read in the log
 */
export function recordOfMessage(message: Buffer): StreamRecord | undefined {
  const json = message.toString("utf8");
  const match = plain.exec(json);
  if (match !== null) return { index: Number(match[1]), json, final: false, plainText: match[2] };
  const index = claimedIndex(json);
  return index === undefined ? undefined : { index, json, final: isFinal(json), plainText: undefined };
}

const finalMember = '"final":true';

/**
 * Whether the record is the last of its stream. Searching is enough: inside a JSON string the
 * quotes would be escaped, and no record has the member anywhere but at its top level.
 */
export function isFinal(json: string): boolean {
  return json.includes(finalMember);
}

/**
 * @returns the index that a record claims; undefined for a text that does not begin like a record
 */
export function claimedIndex(json: string): number | undefined {
  const match = /^\{"index":(\d{1,9})[,}]/.exec(json);
  return match === null ? undefined : Number(match[1]);
}

/** The text that choice 0 gained by a record of the log. */
export function textOf({ json, plainText }: StreamRecord): string {
  if (plainText !== undefined) return JSON.parse(plainText) as string;
  const { choices } = tokenRecord.parse(JSON.parse(json));
  return choices.find(({ index }) => index === 0)?.text ?? "";
}

/** Whether a message has a record's shape, so that its readers may rely on that. */
export function isWellFormed({ index, json, plainText }: StreamRecord): boolean {
  if (plainText !== undefined) return true;
  try {
    const record = tokenRecord.safeParse(JSON.parse(json));
    return record.success && record.data.index === index;
  } catch {
    return false;
  }
}

/**
 * Makes the final record of a stream whose log has none, from its outcome. Every gateway makes the
 * same bytes.
 */
export function finalRecordOf(index: number, outcome: Outcome): StreamRecord {
  const record: TokenRecord = { index, choices: [], final: true, ...endingOf(outcome) };
  return { index, json: JSON.stringify(record), final: true, plainText: undefined };
}

function endingOf(outcome: Outcome): Pick<TokenRecord, "reason" | "error"> {
  if (outcome.kind === "result") return { reason: "finished" };
  const { code, message } = outcome;
  const reason = code === "cancelled" || code === "expired" ? code : "error";
  return { reason, error: { code, message } };
}
