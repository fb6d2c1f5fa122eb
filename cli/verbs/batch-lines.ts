/** A batch as the terminal shows it, and the note that `batch run` writes beside the file. */
import { isObject } from "#shared/json/members.js";
import { parseJson, type JsonValue } from "#shared/json/parse.js";
import type { Batch } from "../../gateway/answers.js";
import { onOneLine } from "../terminal/text.js";

export type BatchView = Partial<Batch>;

/** The note beside a file, with which `batch run` continues the file's batch. */
export interface BatchNote {
  /** Of the file. A file with another content needs another batch. */
  readonly digest: string;
  readonly endpoint: string;
  /**
   * The idempotency key of the upload and of the batch, so that the gateway makes each once. A file
   * that the client uploads again after more than ten minutes is stored twice until it expires.
   */
  readonly key: string;
  readonly file?: string;
  readonly batch?: string;
}

const ends: ReadonlySet<unknown> = new Set<Batch["status"]>(["completed", "failed", "expired", "cancelled"]);
const BAR = 24;

/** How many lines the batch has, and how many have ended. */
export function countsOf({ request_counts: counts }: BatchView): Batch["request_counts"] {
  return counts ?? { total: 0, completed: 0, failed: 0 };
}

export function hasBatchEnded({ status }: BatchView): boolean {
  return ends.has(status);
}

/** Why the batch failed as a whole, a line for each reason. */
export function faultLines({ errors }: BatchView): string[] {
  return (errors?.data ?? []).map(
    ({ code, message, line }) => `${line === null ? "" : `line ${line}: `}${onOneLine(message)} (${onOneLine(code)})`,
  );
}

/** @param rate lines a second */
export function progressBar(batch: BatchView, rate: number): string {
  const { status = "" } = batch;
  const { total, completed, failed } = countsOf(batch);
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
