/** Token records as text: they are told apart without parsing, since every event of every stream passes here. */
import { tokenRecord, type TokenRecord } from "#shared/contract/generation.js";
import type { Outcome } from "#shared/contract/outcome.js";
import type { StreamRecord } from "../inference.js";

/** A whole record that says one text of choice 0 and nothing else; it catches the index and the text. What it matches is JSON. */
const plain =
  // eslint-disable-next-line no-control-regex -- they are what JSON forbids in a string
  /^\{"index":(0|[1-9]\d{0,8}),"choices":\[\{"index":0,"text":("[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"),"tokens":\[(?:(?:0|[1-9]\d{0,8})(?:,(?:0|[1-9]\d{0,8}))*)?\]\}\]\}$/;

/** @param json from the log, whose indexes are its records'. */
export function recordOf(index: number, json: string): StreamRecord {
  const plainText = plain.exec(json)?.[2];
  return { index, json, final: plainText === undefined && isFinal(json), plainText };
}

/** A message as the record that it claims to be; undefined for what claims no index, which may be empty and mean: look into the log. */
export function heardRecord(message: Buffer): StreamRecord | undefined {
  const json = message.toString("utf8");
  const match = plain.exec(json);
  if (match !== null) return { index: Number(match[1]), json, final: false, plainText: match[2] };
  const index = claimedIndex(json);
  return index === undefined ? undefined : { index, json, final: isFinal(json), plainText: undefined };
}

const finalMember = '"final":true';

/** Inside a JSON string the quotes would be escaped, and no record has the member anywhere but at its top. */
export function isFinal(json: string): boolean {
  return json.includes(finalMember);
}

export function claimedIndex(json: string): number | undefined {
  const match = /^\{"index":(\d{1,9})[,}]/.exec(json);
  return match === null ? undefined : Number(match[1]);
}

/** Whether what was heard has a record's shape: whoever reads it may rely on that. */
export function isWhole({ index, json, plainText }: StreamRecord): boolean {
  if (plainText !== undefined) return true;
  try {
    const record = tokenRecord.safeParse(JSON.parse(json));
    return record.success && record.data.index === index;
  } catch {
    return false;
  }
}

/** What ends a stream whose log was never given a final record; every gateway makes the same bytes. */
export function madeFinal(index: number, outcome: Outcome): StreamRecord {
  const record: TokenRecord = { index, choices: [], final: true, ...endingOf(outcome) };
  return { index, json: JSON.stringify(record), final: true, plainText: undefined };
}

function endingOf(outcome: Outcome): Pick<TokenRecord, "reason" | "error"> {
  if (outcome.kind === "result") return { reason: "finished" };
  const { code, message } = outcome;
  const reason = code === "cancelled" || code === "expired" ? code : "error";
  return { reason, error: { code, message } };
}
