/**
 * Reads the head of a request that says nothing unusual. Only a head whose meaning is beyond doubt
 * is plain, and node's parser judges every other one, from its first byte. So for a request that is
 * answered without node, no two readers can disagree on where it ends.
 */
import type { IncomingHttpHeaders } from "node:http";

export interface PlainHead {
  readonly target: string;
  /** By their names in small letters. Each name came once. */
  readonly headers: IncomingHttpHeaders;
  /** Length of the body in bytes, at least 1. */
  readonly length: number;
  /** The address of the other side of the connection; absent until the connection is known. */
  readonly peer?: string | undefined;
}

/** In bytes. Node reads heads of twice this length. */
export const longestPlainHead = 8 * 1024;

const requestLine = /^POST (\/[A-Za-z0-9._~/-]*) HTTP\/1\.1$/;
const fieldLine = /^([A-Za-z][A-Za-z0-9-]*): ([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)$/;
const plainLength = /^[1-9]\d{0,7}$/;
/**
 * Fields that decide about the connection, about the form of the body, or about the pages of a
 * browser. The value `keep-alive` of the field Connection says what HTTP/1.1 means anyway.
 */
const unusualFields: ReadonlySet<string> = new Set([
  "connection",
  "content-encoding",
  "expect",
  "http2-settings",
  "keep-alive",
  "origin",
  "proxy-connection",
  "sec-fetch-site",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/**
 * @param text the bytes before the empty line, each as one character
 * @returns undefined if anything about the head is unusual
 */
export function readPlainHead(text: string): PlainHead | undefined {
  const [first = "", ...lines] = text.split("\r\n");
  const target = requestLine.exec(first)?.[1];
  const headers = target === undefined ? undefined : readFields(lines);
  const length = headers?.["content-length"] ?? "";
  if (target === undefined || headers?.host === undefined || !plainLength.test(length)) return undefined;
  return { target, headers, length: Number(length) };
}

/** Whether a head that begins with this text may be plain. */
export function mayBecomePlain(text: string): boolean {
  const [first = "", ...lines] = text.split("\r\n").slice(0, -1);
  return requestLine.test(first) && readFields(lines) !== undefined;
}

function readFields(lines: readonly string[]): IncomingHttpHeaders | undefined {
  const headers = Object.create(null) as IncomingHttpHeaders;
  for (const line of lines) {
    const [, field = "", value = ""] = fieldLine.exec(line) ?? [];
    const name = field.toLowerCase();
    if (name === "" || headers[name] !== undefined) return undefined;
    if (unusualFields.has(name) && !(name === "connection" && value.toLowerCase() === "keep-alive")) return undefined;
    headers[name] = value;
  }
  return headers;
}
