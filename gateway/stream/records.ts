/** Token records as bytes: they are told apart without parsing, since every event of every stream passes here. */
import { tokenRecord, type TokenRecord } from "#shared/contract/generation.js";
import type { Outcome } from "#shared/contract/outcome.js";
import type { StreamRecord } from "../inference.js";

/** @param bytes from the log, whose indexes are its records'. */
export function recordOf(index: number, bytes: Buffer): StreamRecord {
  return { index, bytes, final: isFinal(bytes) };
}

const finalMember = Buffer.from('"final":true');

/** Inside a JSON string the quotes would be escaped, and no record has the member anywhere but at its top. */
export function isFinal(bytes: Buffer): boolean {
  return bytes.includes(finalMember);
}

const head = '{"index":';
const longestHead = head.length + 16;

/** The index that a message claims; undefined for what is no record of ours, which may be empty and mean: look into the log. */
export function claimedIndex(message: Buffer): number | undefined {
  const match = /^\{"index":(\d{1,9})[,}]/.exec(message.toString("latin1", 0, longestHead));
  return match === null ? undefined : Number(match[1]);
}

/** Whether a message may stand in for its record while the log cannot be read. */
export function isRecord(message: Buffer, index: number): boolean {
  try {
    const record = tokenRecord.safeParse(JSON.parse(message.toString("utf8")));
    return record.success && record.data.index === index;
  } catch {
    return false;
  }
}

/** What ends a stream whose log was never given a final record; every gateway makes the same bytes. */
export function madeFinal(index: number, outcome: Outcome): StreamRecord {
  const record: TokenRecord = { index, choices: [], final: true, ...endingOf(outcome) };
  return { index, bytes: Buffer.from(JSON.stringify(record)), final: true };
}

function endingOf(outcome: Outcome): Pick<TokenRecord, "reason" | "error"> {
  if (outcome.kind === "result") return { reason: "finished" };
  const { code, message } = outcome;
  const reason = code === "cancelled" || code === "expired" ? code : "error";
  return { reason, error: { code, message } };
}
