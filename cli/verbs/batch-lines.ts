/** A batch as the terminal shows it, and the note that `batch run` writes beside the file. */
import { isObject } from "#shared/json/members.js";
import { parseJson, type JsonObject, type JsonValue } from "#shared/json/parse.js";
import { onOneLine } from "../terminal/text.js";

export interface BatchView {
  readonly status: string;
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
  readonly outputFile: string | null;
  readonly errorFile: string | null;
  /** Why the batch failed as a whole, a line for each reason. */
  readonly faults: readonly string[];
}

/** The note beside a file, with which `batch run` continues the file's batch. */
export interface BatchNote {
  /** Of the file. A file with another content needs another batch. */
  readonly digest: string;
  readonly endpoint: string;
  /**
   * The idempotency key of the batch, so that the gateway makes the batch once. A file that the
   * client uploads twice is stored twice until it expires.
   */
  readonly key: string;
  readonly file?: string;
  readonly batch?: string;
}

const ends: ReadonlySet<string> = new Set(["completed", "failed", "expired", "cancelled"]);
const BAR = 24;

export function readBatch(text: string): BatchView {
  const parsed = parseJson(Buffer.from(text));
  const batch = isObject(parsed) ? parsed : {};
  const counts = isObject(batch["request_counts"]) ? batch["request_counts"] : {};
  const errors = isObject(batch["errors"]) ? batch["errors"]["data"] : [];
  return {
    status: textOf(batch["status"]),
    total: numberOf(counts["total"]),
    completed: numberOf(counts["completed"]),
    failed: numberOf(counts["failed"]),
    outputFile: typeof batch["output_file_id"] === "string" ? batch["output_file_id"] : null,
    errorFile: typeof batch["error_file_id"] === "string" ? batch["error_file_id"] : null,
    faults: (Array.isArray(errors) ? errors : []).filter(isObject).map(faultLine),
  };
}

export function hasBatchEnded({ status }: BatchView): boolean {
  return ends.has(status);
}

/** @param rate lines a second */
export function progressBar({ status, total, completed, failed }: BatchView, rate: number): string {
  if (total === 0) return onOneLine(status);
  const done = completed + failed;
  const share = Math.min(1, done / total);
  const full = Math.floor(BAR * share);
  const bar = `[${"#".repeat(full)}${".".repeat(BAR - full)}]`;
  const failures = failed === 0 ? "" : `, ${failed} failed`;
  const pace = rate > 0 ? `, ${rate.toFixed(rate < 10 ? 1 : 0)}/s` : "";
  return `${bar} ${Math.floor(100 * share)} % ${done}/${total}${failures}${pace} ${onOneLine(status)}`;
}

/** @returns undefined if the text is no valid note */
export function readNote(text: string): BatchNote | undefined {
  let value: JsonValue;
  try {
    value = parseJson(Buffer.from(text));
  } catch {
    return undefined;
  }
  if (!isObject(value)) return undefined;
  const { digest, endpoint, key, file, batch } = value;
  if (typeof digest !== "string" || typeof endpoint !== "string" || typeof key !== "string") return undefined;
  return {
    digest,
    endpoint,
    key,
    ...(typeof file === "string" && { file }),
    ...(typeof batch === "string" && { batch }),
  };
}

function faultLine({ code, message, line }: JsonObject): string {
  const where = typeof line === "number" ? `line ${line}: ` : "";
  return `${where}${onOneLine(textOf(message))} (${onOneLine(textOf(code))})`;
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}

function numberOf(value: JsonValue | undefined): number {
  return typeof value === "number" ? value : 0;
}
