/**
 * A single WebSocket connection to a stream's records. Its end has the same form as the end of an
 * event stream.
 */
import type { IncomingMessage } from "node:http";
import { WebSocket } from "ws";
import type { SourceEnd } from "./event-source.js";

export interface WebSocketCall {
  readonly gateway: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Returns false to leave. */
  readonly onRecord: (record: string, at: number) => boolean;
}

/** The close codes of a stream that has ended, and of a gateway that stops and says so. */
const inOrder: ReadonlySet<number> = new Set([1000, 1001]);

export function readSocket({ gateway, path, headers = {}, onRecord }: WebSocketCall): Promise<SourceEnd> {
  const socket = new WebSocket(`${gateway.replace("http", "ws")}${path}`, { perMessageDeflate: false, headers });
  return new Promise((resolve) => {
    socket.on("message", (data: Buffer) => {
      if (socket.readyState !== WebSocket.OPEN || onRecord(data.toString("utf8"), performance.now())) return;
      resolve({ kind: "left" });
      socket.terminate();
    });
    socket.on("unexpected-response", (_, answer: IncomingMessage) => {
      const parts: Buffer[] = [];
      answer.on("data", (part: Buffer) => parts.push(part));
      answer.on("end", () => {
        const body = Buffer.concat(parts).toString("utf8");
        resolve({ kind: "answered", status: answer.statusCode ?? 0, body });
      });
      answer.on("error", (error) => resolve({ kind: "cut", why: error.message }));
    });
    socket.on("error", (error: NodeJS.ErrnoException) => resolve({ kind: "cut", why: error.code ?? error.message }));
    socket.on("close", (code) =>
      resolve(inOrder.has(code) ? { kind: "ended" } : { kind: "cut", why: `closed with ${code}` }),
    );
  });
}

/** @param after index of the last record that the client has */
export async function readWebSocket(gateway: string, id: string, after?: number) {
  const records: string[] = [];
  const query = after === undefined ? "" : `?after=${after}`;
  const end = await readSocket({
    gateway,
    path: `/v2/requests/${id}/ws${query}`,
    onRecord: (record) => records.push(record) > 0,
  });
  return { records, end };
}
