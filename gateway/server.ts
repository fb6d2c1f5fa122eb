/**
 * The listening side of the gateway: it limits times and sizes, refuses bytes that are not HTTP,
 * and lets requests finish before it stops. A client may send on a connection that was idle for
 * `keepAliveTimeoutMs` while the server closes the connection, and gets a reset. Clients that
 * retry, or that keep idle connections for a shorter time, never see that.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { getRequestListener, RequestError } from "@hono/node-server";
import type { GatewayApp } from "./app.js";
import { chooseRequestId } from "./http/headers.js";
import type { Log } from "./http/router.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { delay } from "#shared/retry.js";
import { judge, type BrowserRules } from "./http/browsers.js";
import type { RequestAudit } from "./http/request-audit.js";
import { inviteBody } from "./http/body.js";
import { Connections, type ConnectionLimits } from "./http/connections.js";
import { PlainConnections, type PlainRoute, type Surroundings } from "./http/plain-connections.js";
import { passes, webSocketRefusal } from "./cors.js";
import { moreHandles, type Handle } from "./http/accept.js";
import { refuseConnection } from "./http/refuse-connection.js";
import { endIfResumable } from "./http/stopping.js";
import { refuseWebSocket, type WebSocketEndpoint } from "./api/streams/websocket.js";
import { errorReply } from "./formats/errors.js";
import { send } from "./http/send.js";

const headersTimeoutMs = 10_000;
const requestTimeoutMs = 120_000;
const keepAliveTimeoutMs = 5_000;
/**
 * Node checks timeouts at this interval. Its default of 30 s would let the header timeout of 10 s
 * fire after 40 s.
 */
const checkEveryMs = 1_000;
/** Most header fields of a request. */
const maxHeaders = 2_000;
const maxConnections = 10_000;
/**
 * How many connections may wait until the server accepts them. The kernel's `net.core.somaxconn`,
 * 4,096 by default, limits this number too. Beyond it the kernel drops packets of clients, and
 * clients try again after 1, 3, 7 and 15 seconds. The server notices a client that has left
 * meanwhile only then. Node's default of 511 is less than the clients of one dead gateway.
 */
const BACKLOG = 4_096;
/** See `ConnectionLimits`. */
const stallMs = 30_000;
const usualBrowsers: BrowserRules = { hosts: [], origins: ["loopback"] };
const usualUnreadBytes = 536_870_912;

export interface ServerOptions {
  /** 0 takes any free port. */
  readonly port: number;
  readonly host?: string | undefined;
  readonly log: Log;
  /** If absent, the server treats every request as a plain one, even with an Upgrade header. */
  readonly webSockets?: WebSocketEndpoint | undefined;
  /**
   * Connections that the server accepts per turn of the event loop; 1 by default. A higher number
   * takes some time to set up, and the server listens meanwhile.
   */
  readonly accepting?: number;
  readonly limits?: Partial<ConnectionLimits>;
  /** How long an upload may take to arrive, in ms. By default as long as any request. */
  readonly uploadMs?: number;
  /**
   * Whether handlers judge a request before they want its body. A client that waits for `100
   * Continue` then waits for that; by default it may send at once.
   */
  readonly judgesFirst?: boolean;
  /** Whether plain requests are parsed on the socket; by default they are. */
  readonly socketParser?: boolean;
  /** By default, pages of this machine may use the gateway and pages of other sites may not. */
  readonly browsers?: BrowserRules;
  /** Hears of the pages that the rules for browsers refuse. */
  readonly audit?: RequestAudit;
}

export interface RunningServer {
  readonly port: number;
  /**
   * Listens for another `lingerMs` and ends each connection with the answer to its next request, so
   * that clients move away without meeting a closed connection. Then the server stops accepting,
   * ends the streams that clients can resume at another gateway, and lets requests finish. After
   * `graceMs` the server cuts the remaining requests.
   */
  close(graceMs: number, lingerMs?: number): Promise<void>;
}

export async function startServer(app: GatewayApp, options: ServerOptions): Promise<RunningServer> {
  const listener = getRequestListener(app.fetch, {
    overrideGlobalObjects: false,
    errorHandler: (error) => refuseTarget(error, options.log),
  });
  const usual = { connections: maxConnections, stallMs, unreadBytes: usualUnreadBytes, requestMs: requestTimeoutMs };
  const limits = { ...usual, ...options.limits };
  const connections = new Connections(
    limits,
    (unreadBytes) => options.log({ unreadBytes }, "connection cut: its client takes nothing"),
    (socket) => refuseConnection(socket, "ERR_HTTP_REQUEST_TIMEOUT", connections.firstReply(socket)),
  );
  const { webSockets, accepting = 1, uploadMs = requestTimeoutMs, browsers = usualBrowsers } = options;
  let closing = false;

  const refuse = (socket: Socket, code: string | undefined): void => {
    if (code !== "ECONNRESET") options.log({ reason: code }, "connection refused: not acceptable as HTTP");
    refuseConnection(socket, code, connections.firstReply(socket));
  };
  const plain =
    app.plain === undefined || options.socketParser === false
      ? undefined
      : plainWay(underRules(app.plain, browsers), limits.requestMs, { ...options, refuse, isClosing: () => closing });
  const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    if (closing) outgoing.shouldKeepAlive = false;
    connections.answer(incoming.socket, outgoing, () => begin(incoming, outgoing));
  };
  const begin = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    if (incoming.rawHeaders.length > 2 * maxHeaders) refuseHeaders(incoming, outgoing);
    else if (passes(browsers, incoming, outgoing, options.audit) && app.direct?.(incoming, outgoing) !== true) {
      void listener(incoming, outgoing);
    }
  };

  const make = (): Server => {
    const server = nodeServer(Math.max(uploadMs, limits.requestMs), onRequest);
    // Connections meet node's own listener only if a request on them is not plain.
    const nodes = server.listeners("connection");
    server.removeAllListeners("connection");
    const toNode = (socket: Duplex): void => nodes.forEach((listener) => Reflect.apply(listener, server, [socket]));
    server.on("connection", (socket) => {
      connections.add(socket);
      if (socket.destroyed) return;
      if (plain === undefined) toNode(socket);
      else plain.add(socket, toNode);
    });
    if (webSockets !== undefined) {
      server.on("upgrade", (incoming: IncomingMessage, duplex: Duplex, head: Buffer) => {
        connections.whenAnswered(incoming.socket, head, (rest) => {
          if (webSockets.takes(incoming)) openWebSocket(webSockets, options, incoming, duplex, rest);
          else {
            toNode(duplex);
            duplex.unshift(withoutOffer(incoming, rest));
          }
        });
      });
    }
    server.on("checkContinue", (incoming: IncomingMessage, outgoing: ServerResponse) => {
      if (options.judgesFirst === true) inviteBody(incoming, () => outgoing.writeContinue());
      else outgoing.writeContinue();
      onRequest(incoming, outgoing);
    });
    server.on("clientError", ({ code }: NodeJS.ErrnoException, duplex) => refuse(duplex as Socket, code));
    return server;
  };

  const server = make().listen({ port: options.port, host: options.host, backlog: BACKLOG });
  await once(server, "listening");

  const servers = [server];
  const adopt = (handle: Handle) => servers.push(make().listen(handle, BACKLOG));
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
    plain?.closeIdle();
    for (const reply of connections.lastReplies()) endIfResumable(reply);
    webSockets?.close();
    const cut = setTimeout(() => {
      for (const one of servers) one.closeAllConnections();
      plain?.cutAll();
      webSockets?.terminate();
    }, graceMs);
    await closed;
    clearTimeout(cut);
    connections.close();
    plain?.close();
  };
  return { port: (server.address() as AddressInfo).port, close };
}

function openWebSocket(
  webSockets: WebSocketEndpoint,
  { browsers = usualBrowsers, audit }: Pick<ServerOptions, "browsers" | "audit">,
  incoming: IncomingMessage,
  duplex: Duplex,
  rest: Buffer,
): void {
  const refusal = webSocketRefusal(browsers, incoming, audit);
  if (refusal === undefined) void webSockets.accept(incoming, duplex, rest);
  else refuseWebSocket(duplex, incoming, refusal);
}

/** A server of node without any routes. */
function nodeServer(
  requestTimeout: number,
  onRequest: (incoming: IncomingMessage, outgoing: ServerResponse) => void,
): Server {
  const server = createServer(
    {
      headersTimeout: headersTimeoutMs,
      requestTimeout,
      keepAliveTimeout: keepAliveTimeoutMs,
      connectionsCheckingInterval: checkEveryMs,
      // The app refuses a request without Host later, because its reply has our form.
      requireHostHeader: false,
    },
    onRequest,
  );
  // Node drops header fields beyond its limit silently. A limit of one more than ours shows a
  // request that has too many.
  server.maxHeadersCount = maxHeaders + 1;
  return server;
}

/** The way of requests that are parsed on the socket. */
function plainWay(
  route: PlainRoute,
  requestMs: number,
  { log, refuse, isClosing }: Pick<ServerOptions, "log"> & Pick<Surroundings, "refuse" | "isClosing">,
): PlainConnections {
  const onFailure = (error: unknown): void => log({ err: error }, "request handler failed");
  const times = { headMs: headersTimeoutMs, requestMs, keepAliveMs: keepAliveTimeoutMs };
  return new PlainConnections({ route, refuse, onFailure, isClosing }, times, checkEveryMs);
}

/** The route without requests that the rules for browsers refuse. No plain request names a page. */
function underRules(route: PlainRoute, rules: BrowserRules): PlainRoute {
  const page = { origin: undefined, site: undefined, acts: true };
  const allows = (authority: string | undefined): boolean => judge(rules, { authority, ...page }).said === "allowed";
  return {
    takes: (head) => route.takes(head) && allows(head.headers.host),
    find: (head) => route.find(head),
  };
}

/**
 * Answers errors before the app has the request: no Host, or a Host or target that makes no URL.
 * Any other error that gets here is a bug.
 */
function refuseTarget(error: unknown, log: Log): Response {
  const requestId = chooseRequestId({});
  if (!(error instanceof RequestError)) log({ err: error, requestId }, "request handler failed");
  const { status, headers, body } = errorReply(
    error instanceof RequestError ? fixedError("invalid_argument", "malformedHttp") : error,
  );
  return new Response(body.join(""), { status, headers: { ...headers, "x-request-id": requestId } });
}

function refuseHeaders(incoming: IncomingMessage, outgoing: ServerResponse): void {
  outgoing.shouldKeepAlive = false;
  outgoing.setHeader("x-request-id", chooseRequestId(incoming.headers));
  const error = new InferenceError("invalid_argument", `more than ${maxHeaders} header fields`);
  send(outgoing, errorReply(error, "kserve", 431));
}

/** The headers by which a client offers another protocol. */
const offers: ReadonlySet<string> = new Set(["upgrade", "http2-settings"]);

/**
 * Returns the bytes of a request as if it offered no other protocol; Java's client sends `Upgrade:
 * h2c` with every request. Node has stopped parsing the connection at the offer, and gets the
 * request again.
 * @param rest the bytes behind the head
 */
function withoutOffer(incoming: IncomingMessage, rest: Buffer): Buffer {
  const { method, url, httpVersion, rawHeaders } = incoming;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = "", value = ""] = rawHeaders.slice(i, i + 2);
    if (name.toLowerCase() === "connection") lines.push(`${name}: ${withoutOffers(value)}`);
    else if (!offers.has(name.toLowerCase())) lines.push(`${name}: ${value}`);
  }
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), rest]);
}

function withoutOffers(connection: string): string {
  const kept = connection.split(",").filter((option) => !offers.has(option.trim().toLowerCase()));
  return kept.length === 0 ? "keep-alive" : kept.join(",").trim();
}
