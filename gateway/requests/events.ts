/** The records of a request as server-sent events, from where the client left off. */
import type { ServerResponse } from "node:http";
import { InferenceError } from "#shared/errors.js";
import type { Cursor } from "../stream/cursor.js";
import { openSse } from "../stream/sse.js";

/** Resolves when the stream has ended. @throws what is a bug; its client is told no more than that */
export async function sendEvents(outgoing: ServerResponse, id: string, cursor: Cursor): Promise<void> {
  const sse = openSse(outgoing, { requestId: id, resumable: true });
  try {
    for await (const page of cursor.pages(sse.signal)) {
      for (const { index, json } of page) {
        if (!sse.add({ id: index, data: json }) && !(await sse.room())) return;
      }
    }
  } catch (error) {
    // Not an event of the log: it has no id, and a client that comes back goes on where it was.
    await sse.send({ event: "error", data: errorBody(error) });
    if (!(error instanceof InferenceError)) throw error;
  } finally {
    sse.end();
  }
}

function errorBody(error: unknown): string {
  const { code, message } =
    error instanceof InferenceError ? error : ({ code: "internal", message: "internal error" } as const);
  return JSON.stringify({ error: message, code });
}
