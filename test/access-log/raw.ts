/** Bytes on a socket that no client of HTTP would send, and clients that leave. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** Connects to a gateway and sends these bytes. */
export async function send(url: string, bytes: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(bytes, "latin1");
  return socket;
}

/** Sends these bytes, and reads until the gateway closes the connection. */
export async function exchange(url: string, bytes: string): Promise<string> {
  const socket = await send(url, bytes);
  let text = "";
  socket.on("data", (piece: Buffer) => (text += piece.toString("latin1")));
  await once(socket, "close");
  return text;
}
