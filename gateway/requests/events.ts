/** Sends the records of a request as server-sent events, from the client's position on. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { InferenceError } from "#shared/errors.js";
import { errorBody } from "../http/errors.js";
import { openSse } from "../http/sse.js";
import type { Cursor } from "../stream/cursor.js";

/**
 * Resolves when the stream has ended or the client has disconnected. Sends an InferenceError to the
 * client as an event.
 * @throws every other error; the client reads only "internal error"
 */
export async function sendEvents(outgoing: ServerResponse, id: string, cursor: Cursor): Promise<void> {
  const sse = openSse(outgoing, { requestId: id, resumable: true });
  try {
    for await (const page of cursor.pages(sse.signal)) {
      for (const { index, json } of page) {
        if (!sse.add({ id: index, data: json }) && !(await sse.room())) return;
      }
    }
  } catch (error) {
    // This event is no record, so it has no id: a client that comes back continues after its last
    // record.
    await sse.send({ event: "error", data: errorBody(error) });
    if (!(error instanceof InferenceError)) throw error;
  } finally {
    sse.end();
  }
}

/**
 * Reads the client's position from a request: the record in the parameter `after` or in the header
 * `Last-Event-ID`.
 * @returns the index of the first record to send
 * @throws InferenceError `invalid_argument`
 */
export function resumeIndex({ headers, url = "" }: IncomingMessage): number {
  const start = url.indexOf("?");
  const asked = start === -1 ? null : new URLSearchParams(url.slice(start + 1)).get("after");
  const last = headers["last-event-id"];
  // A browser that reconnects repeats the URL, so the header is newer and wins.
  const inAddress = asked === null ? 0 : indexAfter(asked, "after");
  return last === undefined ? inAddress : indexAfter(String(last), "Last-Event-ID");
}

function indexAfter(value: string, name: string): number {
  if (/^\d{1,9}$/.test(value)) return Number(value) + 1;
  throw new InferenceError("invalid_argument", `${name} must be the index of a record, from 0 to 999999999`);
}
