/** Writes a request's records to one WebSocket: each waits for the socket, and those of one turn of the event loop leave together. */
import type { Duplex } from "node:stream";
import { WebSocket } from "ws";
import { InferenceError } from "#shared/errors.js";
import type { Cursor } from "./cursor.js";

/** Above this a message waits until it has left; as little is held for a client that reads nothing, until a ping finds it out. */
const maxBuffered = 16 * 1024;
const normal = 1000;
const internalError = 1011;
const tryAgainLater = 1013;

/** Resolves when the stream has ended or the client has gone. @throws what is a bug; its client is told no more than that */
export async function sendRecords(client: WebSocket, socket: Duplex, cursor: Cursor): Promise<void> {
  const gone = new AbortController();
  client.on("close", () => gone.abort());
  let corked = false;
  const gather = (): void => {
    if (corked) return;
    corked = true;
    socket.cork();
    setImmediate(() => {
      corked = false;
      socket.uncork();
    });
  };
  /** @returns a promise where the next must wait; false when nobody will read it. */
  const send = (json: string): boolean | Promise<boolean> => {
    if (client.readyState !== WebSocket.OPEN) return false;
    gather();
    if (client.bufferedAmount + json.length < maxBuffered) {
      client.send(json);
      return true;
    }
    return new Promise((resolve) => {
      client.send(json, (error) => resolve(error === undefined || error === null));
    });
  };

  try {
    for await (const page of cursor.pages(gone.signal)) {
      for (const { json } of page) {
        const sent = send(json);
        if (sent !== true && !(await sent)) return;
      }
    }
    client.close(normal);
  } catch (error) {
    if (!(error instanceof InferenceError)) {
      client.close(internalError, "internal");
      throw error;
    }
    client.close(error.code === "unavailable" ? tryAgainLater : internalError, error.code);
  }
}
