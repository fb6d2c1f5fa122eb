/** Events of each path as what they give the application: pieces, and how the stream ended. Each says whether to read on. */
import type { TokenRecord } from "#shared/contract/generation.js";
import { errorKinds, isErrorCode } from "#shared/errors.js";
import type { ServerEvent } from "./event-parser.js";
import type { Reading } from "./history.js";

/** An event of `/v1/completions`. */
export function takeChunk(reading: Reading, { id, data }: ServerEvent, at: number): boolean {
  if (data === "[DONE]") {
    reading.outcome ??= { kind: "failed", code: "none", what: "[DONE] without a finish reason" };
    return false;
  }
  const chunk = JSON.parse(data) as {
    error?: { code?: string; message: string };
    choices: { text: string; finish_reason: string | null }[];
  };
  if (chunk.error !== undefined) return fail(reading, chunk.error.code, chunk.error.message);
  const [choice] = chunk.choices;
  const index = id === undefined ? undefined : Number(id);
  take(reading, { index, text: choice?.text ?? "", record: undefined, at });
  if (choice?.finish_reason !== null && choice !== undefined) reading.outcome = { kind: "finished" };
  return true;
}

/** An event of `generate_stream`. */
export function takeText(reading: Reading, { data }: ServerEvent, at: number): boolean {
  const answer = JSON.parse(data) as { text_output?: string; error?: string; code?: string };
  if (answer.error !== undefined) return fail(reading, answer.code, answer.error);
  take(reading, { index: undefined, text: answer.text_output ?? "", record: undefined, at });
  return true;
}

/** An event of the records' own path. */
export function takeRecord(reading: Reading, event: ServerEvent, at: number): boolean {
  if (event.event === "error") {
    const { code, error } = JSON.parse(event.data) as { code?: string; error: string };
    return fail(reading, code, error);
  }
  const { record, text } = recordIn(event);
  take(reading, { index: Number(event.id), text, record: event.data, at });
  if (record.final !== true) return true;
  const { reason, error } = record;
  reading.outcome =
    reason === "finished"
      ? { kind: "finished" }
      : { kind: "failed", code: error?.code ?? "none", what: error?.message ?? String(reason) };
  return false;
}

export function recordIn({ data }: ServerEvent) {
  const record = JSON.parse(data) as TokenRecord;
  return { record, text: record.choices.find(({ index }) => index === 0)?.text ?? "" };
}

function take(reading: Reading, piece: Omit<Reading["pieces"][number], "connection">): void {
  reading.pieces.push({ ...piece, connection: reading.connections.length - 1 });
}

/** What may be asked again is no failure of the stream: this gateway cannot go on, another may. @returns false: nothing more comes from this one */
function fail(reading: Reading, code: string | undefined, what: string): false {
  if (code === undefined || !isErrorCode(code) || !errorKinds[code].retry) {
    reading.outcome = { kind: "failed", code: code ?? "none", what };
  }
  return false;
}
