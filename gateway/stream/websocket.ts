/**
 * `GET /v2/requests/<id>/ws`: the records of a request as text messages, from where the client left off. Refusals are HTTP replies, before the upgrade. Nothing is
 * compressed and little is read: a client that only listens needs neither.
 */
import { STATUS_CODES, type IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer, type WebSocket } from "ws";
import { InferenceError } from "#shared/errors.js";
import { chooseRequestId, type Log } from "../app.js";
import { firstWanted } from "../requests/after.js";
import type { Requests } from "../requests/requests.js";
import { errorReply, refusalReply, type Reply } from "../v2/reply.js";
import { sendRecords } from "./websocket-sender.js";

export interface WebSocketSettings {
  readonly requests: Requests;
  /** Told of each failure that is a bug and no refusal. */
  readonly log: Log;
  /** Time between two pings; who has not answered one by the next is cut. */
  readonly pingMs?: number;
}

const usualPingMs = 15_000;
const maxPayload = 1_048_576;
/** Longest text of a client that is ignored; whoever sends more wants something else. */
const maxIgnored = 4_096;
const goingAway = 1001;
const policyViolation = 1008;

export class WebSocketDoor {
  readonly #settings: WebSocketSettings;
  readonly #server = new WebSocketServer({ noServer: true, maxPayload, perMessageDeflate: false });
  #closing = false;

  constructor(settings: WebSocketSettings) {
    this.#settings = settings;
    this.#server.on("headers", (headers: string[], incoming: IncomingMessage) => {
      headers.push(`x-request-id: ${chooseRequestId(incoming.headers["x-request-id"])}`);
      headers.push(`baton-request-id: ${idOf(incoming)}`);
    });
  }

  /** How many are open. */
  get size(): number {
    return this.#server.clients.size;
  }

  /** Whether the upgrade that is asked for is one of ours. */
  takes(incoming: IncomingMessage): boolean {
    return (
      incoming.method === "GET" &&
      incoming.headers.upgrade?.toLowerCase() === "websocket" &&
      idOf(incoming) !== undefined
    );
  }

  async accept(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on("error", () => socket.destroy());
    const { requests, log } = this.#settings;
    try {
      if (this.#closing) throw new InferenceError("unavailable", "this gateway is stopping");
      const cursor = await requests.open(idOf(incoming) ?? "", firstWanted(incoming));
      this.#server.handleUpgrade(incoming, socket, head, (client) => {
        this.#watch(client);
        if (this.#closing) client.close(goingAway);
        sendRecords(client, socket, cursor).catch((error: unknown) => log({ err: error }, "websocket failed"));
      });
    } catch (error) {
      const reply = refusalReply(error);
      if (reply === undefined) log({ err: error }, "websocket failed");
      refuseWebSocket(socket, incoming, reply ?? errorReply("internal", "internal error"));
    }
  }

  /** Tells all to go on elsewhere. */
  close(): void {
    this.#closing = true;
    for (const client of this.#server.clients) client.close(goingAway);
  }

  /** Cuts those that have not gone. */
  terminate(): void {
    for (const client of this.#server.clients) client.terminate();
  }

  #watch(client: WebSocket): void {
    let answered = true;
    const pinging = setInterval(() => {
      if (!answered) return client.terminate();
      answered = false;
      client.ping();
    }, this.#settings.pingMs ?? usualPingMs);
    client.on("pong", () => (answered = true));
    client.on("close", () => clearInterval(pinging));
    // What is no WebSocket any more: ws itself closes the connection, with the code for it.
    client.on("error", () => undefined);
    client.on("message", (data: Buffer, isBinary) => {
      if (isBinary || data.length > maxIgnored) client.close(policyViolation);
    });
  }
}

/** Undefined for another path. */
function idOf({ url = "" }: IncomingMessage): string | undefined {
  return /^\/v2\/requests\/([^/?#]+)\/ws(?:\?|$)/.exec(url)?.[1];
}

/** Instead of the upgrade. */
export function refuseWebSocket(socket: Duplex, incoming: IncomingMessage, { status, headers, body }: Reply): void {
  const text = body.join("");
  const head = {
    connection: "close",
    ...headers,
    "x-request-id": chooseRequestId(incoming.headers["x-request-id"]),
    "content-length": String(Buffer.byteLength(text)),
  };
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${text}`, () => socket.destroy());
}
