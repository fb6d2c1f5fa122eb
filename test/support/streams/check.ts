/**
 * Invariants of streams that hold under any fault. Each invariant is a pure function from evidence
 * to violations. The evidence: the pieces that an application got, the log, the log of an
 * undisturbed run, and the messages on NATS.
 */
import type { TokenRecord } from "#shared/contract/generation.js";
import type { Piece, Reading } from "./history.js";

export interface StreamViolation {
  readonly invariant:
    "every stream ends" | "log is the reference" | "client is the log" | "never ahead of the log" | "nothing left over";
  readonly stream: string;
  readonly what: string;
}

/** A stream in Redis. */
export interface StoredStream {
  /** The records' JSON texts, by index. */
  readonly log: readonly string[];
  /**
   * How many records the log had when a worker last took the stream over from a dead worker;
   * undefined if no worker ever did.
   */
  readonly takenAt: number | undefined;
}

/**
 * Every accepted stream ends, and only its own end ends the stream. The outcome may follow the
 * final record. The check for keys left over in Redis shows whether the outcome did follow.
 */
export function ends({ ask, outcome }: Reading, stored: StoredStream): StreamViolation[] {
  const violations: StreamViolation[] = [];
  const note = (what: string) => violations.push({ invariant: "every stream ends", stream: ask.name, what });
  if (outcome?.kind !== "finished")
    note(outcome === undefined ? "the client still reads" : `${outcome.kind}: ${outcome.what}`);
  const finals = stored.log.flatMap((record, i) => (/"final":true/.test(record) ? [i] : []));
  if (finals.length !== 1 || finals[0] !== stored.log.length - 1) {
    note(`final records at ${finals.join(", ") || "no index"} of ${stored.log.length} records`);
  }
  return violations;
}

/** Record by record, the log equals the log of an undisturbed run. */
export function logIsReference(
  stream: string,
  log: readonly string[],
  reference: readonly string[],
): StreamViolation[] {
  const length = Math.max(log.length, reference.length);
  for (let i = 0; i < length; i++) {
    if (log[i] === reference[i]) continue;
    const what = `record ${i} of ${log.length}: ${log[i] ?? "(none)"} instead of ${reference[i] ?? "(none)"}`;
    return [{ invariant: "log is the reference", stream, what }];
  }
  return [];
}

/**
 * The application got exactly the log: each index once, in order, nothing else, and all of the log.
 */
export function clientIsLog(
  { ask, pieces }: Pick<Reading, "ask" | "pieces">,
  log: readonly string[],
): StreamViolation[] {
  const texts = log.map(firstText);
  let next = 0;
  for (const [i, piece] of pieces.entries()) {
    const taken = takes(piece, next, log, texts);
    if (typeof taken === "string") {
      const what = `piece ${i}, over connection ${piece.connection}: ${taken}`;
      return [{ invariant: "client is the log", stream: ask.name, what }];
    }
    next = taken;
  }
  const missing = pieces.at(-1)?.record === undefined ? texts.slice(next).join("") !== "" : next < log.length;
  if (!missing) return [];
  return [
    {
      invariant: "client is the log",
      stream: ask.name,
      what: `records from ${next} of ${log.length} on were never given`,
    },
  ];
}

/** @returns the index that follows, or a text that names the fault */
function takes({ index, text, record }: Piece, next: number, log: readonly string[], texts: readonly string[]) {
  if (record !== undefined) {
    if (index !== next) return `record ${index} where ${next} was due`;
    if (record !== log[next]) return `${record} where the log has ${log[next] ?? "nothing"}`;
    return next + 1;
  }
  if (index !== undefined && index < next) return `index ${index} again, where ${next} was due`;
  // Records without text make no piece. Without an index, a piece is the next record with text.
  const last = index ?? texts.findIndex((one, i) => i >= next && one !== "");
  if (last === -1) return `${JSON.stringify(text)} where no text is left`;
  const expected = texts.slice(next, last + 1).join("");
  if (text === expected) return last + 1;
  return `${JSON.stringify(text)} where records ${next} to ${last} have ${JSON.stringify(expected)}`;
}

/**
 * A message on the public subject of a stream, with the log's record as soon as the message
 * arrived.
 */
export interface SeenMessage {
  readonly stream: string;
  readonly index: number;
  readonly bytes: string;
  /** The log's record at that index at that moment; undefined if the log was shorter. */
  readonly logged: string | undefined;
}

export function neverAhead({ stream, index, bytes, logged }: SeenMessage): StreamViolation[] {
  if (logged === bytes) return [];
  const what =
    logged === undefined
      ? `record ${index} was on NATS and not in the log`
      : `record ${index} on NATS is ${bytes}, in the log ${logged}`;
  return [{ invariant: "never ahead of the log", stream, what }];
}

function firstText(record: string): string {
  const { choices } = JSON.parse(record) as TokenRecord;
  return choices.find(({ index }) => index === 0)?.text ?? "";
}
