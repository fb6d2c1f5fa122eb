/** Reads a stream's records over a WebSocket, from one connection, to its end. */
import { WebSocket } from "ws";

export interface WebSocketReading {
  readonly records: readonly string[];
  /** The code that it was closed with; 1000 at the stream's end. */
  readonly code: number;
}

/** @param after index of the last record that the client has. */
export function readWebSocket(gateway: string, id: string, after?: number): Promise<WebSocketReading> {
  const query = after === undefined ? "" : `?after=${after}`;
  const socket = new WebSocket(`${gateway.replace("http", "ws")}/v2/requests/${id}/ws${query}`);
  const records: string[] = [];
  return new Promise((resolve, reject) => {
    socket.on("message", (data: Buffer) => records.push(data.toString("utf8")));
    socket.on("error", reject);
    socket.on("close", (code) => resolve({ records, code }));
  });
}
