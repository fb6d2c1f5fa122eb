/**
 * `GET /v2/requests/<id>/ws`: sends a request's records as text messages, from the client's
 * position on. Refusals are HTTP replies, before the upgrade. Nothing is compressed, and clients
 * only listen: the gateway ignores short texts, and closes the socket on any other message.
 */
import { STATUS_CODES, type IncomingMessage } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocket, WebSocketServer } from "ws";
import { z } from "zod";
import { fixedError, InferenceError, type ErrorCode } from "#shared/errors.js";
import { notedPages } from "../../facts/request-facts.js";
import { errorReply, isRefusal } from "../../formats/errors.js";
import { factsOf, noteReply, type AnswerFacts } from "../../facts/answer-facts.js";
import { countRefusal, noteRefusedUpgrade } from "../../http/counts.js";
import { chooseRequestId } from "../../http/headers.js";
import { withHeaders, type Reply } from "../../formats/reply.js";
import type { Log } from "../../http/router.js";
import { countResume, countStreamReader } from "../../stream/counts.js";
import type { StreamRecord } from "../../stream/open-stream.js";
import type { FrontDoor } from "../../http/traces/front-door.js";
import { readerSpan } from "../../http/traces/reader-trace.js";
import type { RelaySpan } from "../../trace/relay-span.js";
import type { RequestTrace } from "../../trace/request-trace.js";
import { admitCall, askingOf, openGuard, TICKET_PROTOCOL, type Guard } from "../../http/guard.js";
import { openReader } from "../../http/opened.js";
import { Caller } from "../../service/caller.js";
import type { RequestService } from "../../service/requests.js";
import { endpointsOf } from "../endpoint/endpoint.js";
import { readQuery } from "../endpoint/parameters.js";
import { firstIndex, positionQuery } from "./events.js";

const endpoint = endpointsOf<RequestService>("inference");

const PATH = "/v2/requests/:id/ws";

export const webSocketEndpoints = [
  endpoint({
    method: "GET",
    path: PATH,
    right: "read",
    does: "Sends the records of a request as messages of a WebSocket, from the client's position on.",
    opensByTicketFor: "id",
    query: positionQuery,
    ignoresOthers: true,
    isWebSocket: true,
    answers: {
      101: { says: "A text message for each record." },
      426: {
        says: "Refused: the request asks for no WebSocket.",
        shape: () => z.strictObject({ error: z.string(), code: z.literal("invalid_argument") }),
      },
    },
    refusals: ["unknown_request", "ahead_of_log", "resume_window_passed", "stream_limit"],
    handle() {
      const reply = errorReply(fixedError("invalid_argument", "webSocketOnly"), "kserve", 426);
      return withHeaders(reply, { upgrade: "websocket" });
    },
  }),
];

export interface WebSocketSettings {
  readonly requests: RequestService;
  /** By default all clients belong to the same tenant. */
  readonly guard?: Guard;
  /** Called for each failure that is a bug and no refusal. */
  readonly log: Log;
  /** Time between two pings; the gateway cuts a client that has not answered a ping by the next. */
  readonly pingMs?: number;
  /** Absent if the gateway makes no traces. */
  readonly frontDoor?: FrontDoor | undefined;
}

/** The protocol that a client offers beside a ticket. */
const PROTOCOL = "baton.v1";
const defaultPingMs = 15_000;
/** Largest message of a client, in bytes; after a larger message `ws` closes the connection. */
const maxPayload = 1_048_576;
/** Longest text message to ignore; a client that sends more takes this path for another. */
const maxIgnoredBytes = 4_096;
/**
 * While more bytes than this are unsent, the next record waits until the message before it has
 * left. So a client that reads nothing holds no more memory until an unanswered ping cuts the
 * client.
 */
const maxBufferedBytes = 16 * 1024;
/** The status of the answer that opens a WebSocket. */
const SWITCHING = 101;
/** Close codes of RFC 6455, section 7.4.1, and of the registry at IANA. */
const normalClosure = 1000;
const goingAway = 1001;
const policyViolation = 1008;
const internalError = 1011;
const tryAgainLater = 1013;
/** Private codes, like the statuses of HTTP. */
const unauthorized = 4401;
const forbidden = 4403;

export class WebSocketEndpoint {
  readonly #settings: WebSocketSettings;
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload,
    perMessageDeflate: false,
    // A browser gives up if the answer selects none of its protocols, and a ticket is no protocol.
    handleProtocols: (offered) =>
      offered.has(PROTOCOL) ? PROTOCOL : ([...offered].find((one) => !one.startsWith(TICKET_PROTOCOL)) ?? false),
  });
  /** The traces of sampled readers, whose answers name them. */
  readonly #traces = new WeakMap<IncomingMessage, RequestTrace>();
  #closing = false;

  constructor(settings: WebSocketSettings) {
    this.#settings = settings;
    this.#server.on("headers", (headers: string[], incoming: IncomingMessage) => {
      const requestId = chooseRequestId(incoming.headers);
      headers.push(`x-request-id: ${requestId}`);
      headers.push(`baton-request-id: ${idOf(incoming)}`);
      const trace = this.#traces.get(incoming);
      if (trace !== undefined) headers.push(`traceresponse: ${trace.traceresponse}`);
      const facts = factsOf(incoming);
      if (facts === undefined) return;
      facts.begin(SWITCHING);
      facts.id = requestId;
      facts.request = idOf(incoming);
    });
  }

  /** How many WebSockets are open. */
  get size(): number {
    return this.#server.clients.size;
  }

  /** Whether this endpoint accepts the requested upgrade. */
  takes(incoming: IncomingMessage): boolean {
    return (
      incoming.method === "GET" &&
      incoming.headers.upgrade?.toLowerCase() === "websocket" &&
      idOf(incoming) !== undefined
    );
  }

  /** Upgrades the connection and sends the records, or refuses with an HTTP reply. */
  async accept(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on("error", () => socket.destroy());
    const { requests, guard = openGuard(), log } = this.#settings;
    try {
      if (this.#closing) throw fixedError("unavailable", "webSocketStopping");
      const id = idOf(incoming) ?? "";
      const owner = await admitCall(guard, askingOf(incoming, id), "read");
      guard.restricted?.check("inference", incoming.headers);
      const { after } = readQuery(incoming.url ?? "", positionQuery, true);
      // A connection that has closed emits no further `close`.
      if (!socket.destroyed) socket.once("close", openReader(guard, owner, incoming));
      const first = firstIndex(after, incoming.headers);
      const caller = Caller.of(owner);
      const cursor = await requests.open(caller, id, first);
      const span = await this.#spanOf(incoming, socket, caller, { id, first });
      this.#server.handleUpgrade(incoming, socket, head, (client) => {
        this.#watch(client);
        countResume(first);
        client.on("close", countStreamReader("websocket"));
        countBytes(socket, factsOf(incoming));
        if (this.#closing) client.close(goingAway);
        client.on(
          "close",
          guard.watch(owner, ({ code }) => {
            refuseClient(client, code);
            const facts = factsOf(incoming);
            if (facts !== undefined) facts.code = code;
          }),
        );
        const pages = (signal: AbortSignal) => span?.follow(cursor.pages(signal)) ?? cursor.pages(signal);
        sendRecords(client, socket, pages, factsOf(incoming)).catch((error: unknown) =>
          log({ err: error }, "websocket failed"),
        );
      });
    } catch (error) {
      if (isRefusal(error)) guard.audit?.refused(error, incoming);
      else log({ err: error }, "websocket failed");
      refuseWebSocket(socket, incoming, errorReply(error));
    }
  }

  /**
   * Begins the trace of a reader, which ends with the connection.
   * @returns undefined if the reader is not sampled
   */
  async #spanOf(
    incoming: IncomingMessage,
    socket: Duplex,
    caller: Caller,
    { id, first }: { readonly id: string; readonly first: number },
  ): Promise<RelaySpan | undefined> {
    const { requests, frontDoor } = this.#settings;
    if (frontDoor === undefined || socket.destroyed) return undefined;
    const { headers, httpVersion } = incoming;
    const model = requests.modelOf(caller, id);
    const arrival = { method: "GET", path: PATH, protocol: "own", startAt: performance.now() } as const;
    const trace = frontDoor.begin({ ...arrival, headers, httpVersion, model });
    if (trace === undefined) return undefined;
    this.#traces.set(incoming, trace);
    socket.once("close", () => trace.end(SWITCHING));
    const relayed = { request: id, model, tenant: caller.tenant, from: first };
    return readerSpan(trace, relayed, () => requests.traceOf(caller, id));
  }

  /** Closes all WebSockets with the code after which clients continue at another gateway. */
  close(): void {
    this.#closing = true;
    for (const client of this.#server.clients) client.close(goingAway);
  }

  /** Cuts the connections that are still open. */
  terminate(): void {
    for (const client of this.#server.clients) client.terminate();
  }

  /**
   * Pings the client until it leaves, and closes the socket if the client does more than listen.
   */
  #watch(client: WebSocket): void {
    let answered = true;
    const pinging = setInterval(() => {
      if (!answered) return client.terminate();
      answered = false;
      client.ping();
    }, this.#settings.pingMs ?? defaultPingMs);
    client.on("pong", () => (answered = true));
    client.on("close", () => clearInterval(pinging));
    // An error means an invalid frame; `ws` closes the connection with the right code.
    client.on("error", () => undefined);
    client.on("message", (data: Buffer, isBinary) => {
      if (isBinary || data.length > maxIgnoredBytes) client.close(policyViolation);
    });
  }
}

/** Notes the bytes of all messages, when the connection has closed. */
function countBytes(socket: Duplex, facts: AnswerFacts | undefined): void {
  if (facts === undefined || !(socket instanceof Socket)) return;
  const before = socket.bytesWritten;
  socket.once("close", () => (facts.bytesOut = socket.bytesWritten - before));
}

/** Ends a WebSocket whose key is good no longer. @param fault of the key */
function refuseClient(client: WebSocket, fault: ErrorCode): void {
  if (fault === "tenant_suspended") client.close(forbidden, fault);
  else client.close(unauthorized, "invalid_api_key");
}

/** @returns the request id in the path; undefined for another path */
function idOf({ url = "" }: IncomingMessage): string | undefined {
  return /^\/v2\/requests\/([^/?#]+)\/ws(?:\?|$)/.exec(url)?.[1];
}

/** Answers with an HTTP reply instead of the upgrade, and closes the connection. */
export function refuseWebSocket(socket: Duplex, incoming: IncomingMessage, reply: Reply): void {
  const { status, headers, body } = reply;
  countRefusal(reply);
  noteRefusedUpgrade(socket, status);
  const text = body.join("");
  const length = Buffer.byteLength(text);
  const requestId = chooseRequestId(incoming.headers);
  const facts = factsOf(incoming);
  if (facts !== undefined) {
    noteReply(facts, reply, requestId, length);
    facts.isWhole = true;
  }
  const head = {
    connection: "close",
    ...headers,
    "x-request-id": requestId,
    "content-length": String(length),
  };
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${text}`, () => socket.destroy());
}

/**
 * Sends a request's records to a WebSocket. Records wait for a busy socket, and all records of a
 * turn of the event loop leave in a single write. Resolves when the stream has ended or the client
 * has disconnected. An InferenceError becomes the reason of the close.
 * @throws every other error; the client reads only "internal"
 */
async function sendRecords(
  client: WebSocket,
  socket: Duplex,
  pagesUntil: (signal: AbortSignal) => AsyncIterable<readonly StreamRecord[]>,
  facts: AnswerFacts | undefined,
): Promise<void> {
  const disconnected = new AbortController();
  client.on("close", () => disconnected.abort());
  let corked = false;
  /** Holds writes back until the end of this turn of the event loop. */
  const cork = (): void => {
    if (corked) return;
    corked = true;
    socket.cork();
    setImmediate(() => {
      corked = false;
      socket.uncork();
    });
  };
  /** @returns a promise if the next record must wait; false if the client has gone */
  const send = (json: string): boolean | Promise<boolean> => {
    if (client.readyState !== WebSocket.OPEN) return false;
    cork();
    if (client.bufferedAmount + json.length < maxBufferedBytes) {
      client.send(json);
      return true;
    }
    return new Promise((resolve) => {
      client.send(json, (error) => resolve(error === undefined || error === null));
    });
  };

  try {
    for await (const page of notedPages(pagesUntil(disconnected.signal), facts)) {
      for (const { json } of page) {
        const sent = send(json);
        if (sent !== true && !(await sent)) return;
      }
    }
    if (facts !== undefined) facts.isWhole = client.readyState === WebSocket.OPEN;
    client.close(normalClosure);
  } catch (error) {
    if (!(error instanceof InferenceError)) {
      client.close(internalError, "internal");
      throw error;
    }
    client.close(error.code === "unavailable" ? tryAgainLater : internalError, error.code);
  }
}
