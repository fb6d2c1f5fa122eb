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

const accepted = Promise.resolve(true);

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
  const send = (bytes: Buffer): Promise<boolean> => {
    if (client.readyState !== WebSocket.OPEN) return Promise.resolve(false);
    gather();
    if (client.bufferedAmount + bytes.length < maxBuffered) {
      client.send(bytes, { binary: false });
      return accepted;
    }
    return new Promise((resolve) => {
      client.send(bytes, { binary: false }, (error) => resolve(error === undefined || error === null));
    });
  };

  try {
    for await (const { bytes } of cursor.records(gone.signal)) if (!(await send(bytes))) return;
    client.close(normal);
  } catch (error) {
    if (!(error instanceof InferenceError)) {
      client.close(internalError, "internal");
      throw error;
    }
    client.close(error.code === "unavailable" ? tryAgainLater : internalError, error.code);
  }
}
