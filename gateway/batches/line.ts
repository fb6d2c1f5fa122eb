/**
 * Reads a line of a batch's file: the request, or the line's fault. The body keeps its bytes, so
 * that the endpoint reads the body like any other.
 */
import { JsonError } from "#shared/json/error.js";
import { rootMembers } from "#shared/json/root-members.js";
import type { Line } from "./json-lines.js";

export const lineErrorCodes = [
  "invalid_json",
  "missing_custom_id",
  "duplicate_custom_id",
  "invalid_method",
  "invalid_url",
  "invalid_body",
  "line_too_long",
  /** The line has no fault: the batch expired before the line ran. */
  "batch_expired",
] as const;

export type LineErrorCode = (typeof lineErrorCodes)[number];

export interface LineFault {
  readonly code: LineErrorCode;
  readonly message: string;
}

export type ReadLine =
  | { readonly customId: string; readonly body: Buffer; readonly fault?: undefined }
  /** The id is undefined if the line has no valid id, or cannot be read. */
  | { readonly customId: string | undefined; readonly fault: LineFault };

/** Longest id that a client may give a line, in characters. */
const MOST_ID = 512;

/**
 * @param endpoint the batch's path
 * @param isDuplicate whether an earlier line has the same id
 */
export function readLine({ bytes }: Line, endpoint: string, isDuplicate: boolean): ReadLine {
  if (bytes === undefined) return faulty(undefined, "line_too_long", "the line is longer than a line may be");
  let members: Map<string, Buffer>;
  try {
    members = rootMembers(bytes);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return faulty(undefined, "invalid_json", error.message);
  }
  const customId = stringOf(members.get("custom_id"));
  if (customId === undefined || customId === "" || customId.length > MOST_ID) {
    return faulty(undefined, "missing_custom_id", `custom_id must be a text of 1 to ${MOST_ID} characters`);
  }
  if (isDuplicate) return faulty(customId, "duplicate_custom_id", "an earlier line has the same custom_id");
  if (stringOf(members.get("method")) !== "POST") return faulty(customId, "invalid_method", "method must be POST");
  if (stringOf(members.get("url")) !== endpoint) {
    return faulty(customId, "invalid_url", `url must be the batch's endpoint, ${endpoint}`);
  }
  const body = members.get("body");
  if (body?.[0] !== 0x7b) return faulty(customId, "invalid_body", "body must be an object");
  const wrong = bodyFault(body);
  return wrong === undefined ? { customId, body } : faulty(customId, "invalid_body", wrong);
}

/** @returns the line's id; undefined if the line has no valid id, or cannot be read */
export function customIdOf(bytes: Buffer): string | undefined {
  try {
    const id = stringOf(rootMembers(bytes).get("custom_id"));
    return id === undefined || id === "" || id.length > MOST_ID ? undefined : id;
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}

function bodyFault(body: Buffer): string | undefined {
  try {
    const stream = rootMembers(body).get("stream");
    return stream?.toString("latin1") === "true" ? "stream must be false: a batch has whole answers" : undefined;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    // `rootMembers` refuses a body with very many members. The endpoint may still take the body.
    return /limit/.test(error.message) ? undefined : error.message;
  }
}

/** `rootMembers` has not parsed the line's values, so a value may be invalid JSON. */
function stringOf(value: Buffer | undefined): string | undefined {
  if (value?.[0] !== 0x22) return undefined;
  try {
    const text: unknown = JSON.parse(value.toString("utf8"));
    return typeof text === "string" ? text : undefined;
  } catch {
    return undefined;
  }
}

function faulty(customId: string | undefined, code: LineErrorCode, message: string): ReadLine {
  return { customId, fault: { code, message } };
}
