/** Where a client goes on reading: after the record that it says it has. */
import type { IncomingMessage } from "node:http";
import { InferenceError } from "#shared/errors.js";

/** @returns the index of the first record wanted. @throws InferenceError `invalid_argument` */
export function firstWanted({ headers, url = "" }: IncomingMessage): number {
  const start = url.indexOf("?");
  const asked = start === -1 ? null : new URLSearchParams(url.slice(start + 1)).get("after");
  const last = headers["last-event-id"];
  // A browser that reconnects repeats the address, so what it has read since then counts more.
  const inAddress = asked === null ? 0 : indexAfter(asked, "after");
  return last === undefined ? inAddress : indexAfter(String(last), "Last-Event-ID");
}

function indexAfter(value: string, name: string): number {
  if (/^\d{1,9}$/.test(value)) return Number(value) + 1;
  throw new InferenceError("invalid_argument", `${name} must be the index of a record, from 0 to 999999999`);
}
