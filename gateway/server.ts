/**
 * The listening side: time and size limits of spec/reliability.md section 3, refusals of what is no HTTP, and a stop that lets
 * requests finish. Note `keepAliveTimeout`: a client that sends on a connection idle for 5 s may meet its close and get a reset;
 * clients that retry or keep idle connections for less never see it.
 */
import { createServer, STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { getRequestListener, RequestError } from "@hono/node-server";
import { chooseRequestId, type GatewayApp, type Log } from "./app.js";
import type { ErrorCode } from "#shared/errors.js";
import { delay } from "#shared/retry.js";
import type { BrowserRules } from "./browsers.js";
import { Connections, type ConnectionLimits } from "./connections.js";
import { passes, webSocketRefusal } from "./cors.js";
import { moreHandles, type Handle } from "./handles.js";
import { replayAsPlain } from "./replay.js";
import { endIfResumable } from "./stream/sse.js";
import { refuseWebSocket, type WebSocketDoor } from "./stream/websocket.js";
import { errorReply, send } from "./v2/reply.js";

const headersTimeoutMs = 10_000;
const requestTimeoutMs = 120_000;
const keepAliveTimeoutMs = 5_000;
/** How late a timeout may be noticed; node's own 30 s would make the 10 s above 40. */
const checkEveryMs = 1_000;
const maxHeaders = 2_000;
const maxConnections = 10_000;
const stallMs = 30_000;
const usualBrowsers: BrowserRules = { hosts: [], origins: ["loopback"] };
const usualUnreadBytes = 536_870_912;

export interface ServerOptions {
  /** 0 for any free one. */
  readonly port: number;
  readonly host?: string | undefined;
  readonly log: Log;
  /** Absent: every request is a plain one, whatever upgrade it asks for. */
  readonly webSockets?: WebSocketDoor | undefined;
  /** Connections that are accepted per turn of the event loop; 1 if not said. The first comes at once, the others when they can be had. */
  readonly accepting?: number;
  readonly limits?: Partial<ConnectionLimits>;
  /** If not said, only pages of this machine may act. */
  readonly browsers?: BrowserRules;
}

export interface RunningServer {
  readonly port: number;
  /**
   * Goes on listening for `lingerMs`, ending each connection with the answer to its next request, so that clients move away without meeting a closed
   * one; then stops accepting, ends the streams whose clients can go on elsewhere, lets requests finish, and after `graceMs` cuts those that have not.
   */
  close(graceMs: number, lingerMs?: number): Promise<void>;
}

export async function startServer(app: GatewayApp, options: ServerOptions): Promise<RunningServer> {
  const listener = getRequestListener(app.fetch, {
    overrideGlobalObjects: false,
    errorHandler: (error) => refuseTarget(error, options.log),
  });
  const limits = { connections: maxConnections, stallMs, unreadBytes: usualUnreadBytes, ...options.limits };
  const connections = new Connections(limits, (unreadBytes) =>
    options.log({ unreadBytes }, "connection cut: its client takes nothing"),
  );
  const { webSockets, accepting = 1, browsers = usualBrowsers } = options;
  let closing = false;

  const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    if (closing) outgoing.shouldKeepAlive = false;
    connections.answer(incoming.socket, outgoing, () => begin(incoming, outgoing));
  };
  const begin = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    if (incoming.rawHeaders.length > 2 * maxHeaders) refuseHeaders(incoming, outgoing);
    else if (passes(browsers, incoming, outgoing) && !app.direct(incoming, outgoing)) void listener(incoming, outgoing);
  };

  const make = (): Server => {
    const server = createServer(
      {
        headersTimeout: headersTimeoutMs,
        requestTimeout: requestTimeoutMs,
        keepAliveTimeout: keepAliveTimeoutMs,
        connectionsCheckingInterval: checkEveryMs,
        // Refused all the same, further on, where the reply has our form.
        requireHostHeader: false,
      },
      onRequest,
    );
    server.on("connection", (socket) => connections.enter(socket));
    // Node drops what is beyond its own limit without a word: one more than ours shows that there was more.
    server.maxHeadersCount = maxHeaders + 1;
    if (webSockets !== undefined) {
      server.on("upgrade", (incoming: IncomingMessage, duplex: Duplex, head: Buffer) => {
        connections.whenAnswered(incoming.socket, head, (rest) => {
          if (webSockets.takes(incoming)) {
            const refusal = webSocketRefusal(browsers, incoming);
            if (refusal === undefined) void webSockets.accept(incoming, duplex, rest);
            else refuseWebSocket(duplex, incoming, refusal);
          } else replayAsPlain(server, incoming, duplex, rest);
        });
      });
    }
    server.on("clientError", (error: NodeJS.ErrnoException, duplex) => {
      const socket = duplex as Socket;
      const { code } = error;
      if (code !== "ECONNRESET") options.log({ reason: code }, "connection refused: not acceptable as HTTP");
      refuseConnection(socket, code, connections.firstReply(socket));
    });
    return server;
  };

  const server = make();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, () => {
      server.off("error", reject);
      resolve();
    });
  });

  const servers = [server];
  const adopt = (handle: Handle) => servers.push(make().listen(handle));
  const adopted = accepting > 1 ? moreHandles(server, accepting - 1, adopt) : undefined;

  const close = async (graceMs: number, lingerMs = 0): Promise<void> => {
    closing = true;
    for (const reply of connections.lastReplies()) if (!reply.headersSent) reply.shouldKeepAlive = false;
    await Promise.all([adopted, delay(lingerMs)]);
    const closed = Promise.all(
      servers.map((one) => {
        const over = new Promise<void>((resolve) => one.close(() => resolve()));
        one.closeIdleConnections();
        return over;
      }),
    );
    for (const reply of connections.lastReplies()) endIfResumable(reply);
    webSockets?.close();
    const cut = setTimeout(() => {
      for (const one of servers) one.closeAllConnections();
      webSockets?.terminate();
    }, graceMs);
    await closed;
    clearTimeout(cut);
    connections.close();
  };
  return { port: (server.address() as AddressInfo).port, close };
}

/** No Host, or one or a target that is no URL; anything else that gets here escaped the app. */
function refuseTarget(error: unknown, log: Log): Response {
  const headers = { "x-request-id": chooseRequestId(undefined) };
  if (error instanceof RequestError) {
    return Response.json({ error: "malformed HTTP request", code: "invalid_argument" }, { status: 400, headers });
  }
  log({ err: error, requestId: headers["x-request-id"] }, "request handler failed");
  return Response.json({ error: "internal error", code: "internal" }, { status: 500, headers });
}

function refuseHeaders(incoming: IncomingMessage, outgoing: ServerResponse): void {
  outgoing.shouldKeepAlive = false;
  outgoing.setHeader("x-request-id", chooseRequestId(incoming.headers["x-request-id"]));
  send(outgoing, errorReply("invalid_argument", `more than ${maxHeaders} header fields`, 431));
}

const parserRefusals: Readonly<Record<string, readonly [status: number, code: ErrorCode, text: string]>> = {
  HPE_HEADER_OVERFLOW: [431, "invalid_argument", "the request's head is larger than 16 KiB"],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, "payload_too_large", "a chunk's extensions are larger than 16 KiB"],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "request_timeout", "the request took too long to arrive"],
};

/** What the parser refused is not read any further, so the connection ends; a reply already begun must not get this into it. */
function refuseConnection(socket: Socket, reason: string | undefined, begun: ServerResponse | undefined): void {
  if (!socket.writable || begun?.headersSent === true) {
    socket.destroy();
    return;
  }
  const [status, code, text] = parserRefusals[reason ?? ""] ?? [400, "invalid_argument", "malformed HTTP request"];
  const body = JSON.stringify({ error: text, code });
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: application/json\r\n` +
      `x-request-id: ${chooseRequestId(undefined)}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}
