/**
 * The listening side of the gateway: it limits times and sizes, refuses bytes that are not HTTP,
 * and lets requests finish before it stops. A client may send on a connection that was idle for
 * `keepAliveTimeoutMs` while the server closes the connection, and gets a reset. Clients that
 * retry, or that keep idle connections for a shorter time, never see that.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { getRequestListener, RequestError } from "@hono/node-server";
import type { GatewayApp } from "./app.js";
import { chooseRequestId } from "./http/headers.js";
import type { Log } from "./http/router.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { delay } from "#shared/retry.js";
import { judge, type BrowserRules } from "#shared/listening/browsers.js";
import { factsOf, type AccessLog, type AnswerFacts } from "./facts/answer-facts.js";
import { countRefusal, type HttpCounts } from "./http/counts.js";
import { measuredBytes, measuredClasses } from "./http/measured.js";
import type { RequestAudit } from "./http/request-audit.js";
import { inviteBody } from "./http/body.js";
import { FairStart } from "./http/fair-start.js";
import { askingOf, type Guard } from "./http/guard.js";
import type { Certificates } from "#shared/http/certificates.js";
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
  /** If present, the server speaks TLS alone. */
  readonly certificates?: Certificates | undefined;
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
  /** If present, requests begin in turns by share. */
  readonly shareOf?: Guard["shareOf"];
  /** Counts the requests; absent if nobody does. */
  readonly counts?: HttpCounts;
  /** Hears of the pages that the rules for browsers refuse. */
  readonly audit?: RequestAudit;
  /** Gets a line for each answer. */
  readonly access?: AccessLog | undefined;
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
  const listener = listenerOf(app, options.log);
  const usual = { connections: maxConnections, stallMs, unreadBytes: usualUnreadBytes, requestMs: requestTimeoutMs };
  const limits = { ...usual, ...options.limits };
  const connections = new Connections(
    limits,
    (unreadBytes) => options.log({ unreadBytes }, "connection cut: its client takes nothing"),
    (socket) => refuseConnection(socket, "ERR_HTTP_REQUEST_TIMEOUT", connections.firstReply(socket), options),
    () => fair?.relieve(),
  );
  options.counts?.show(connections);
  const { shareOf, webSockets, accepting = 1, uploadMs = requestTimeoutMs, browsers = usualBrowsers } = options;
  const fair = shareOf && new FairStart({ shareOf, held: () => connections.held });
  let closing = false;

  const refuse = (socket: Socket, code: string | undefined): void => {
    if (code !== "ECONNRESET") options.log({ reason: code }, "connection refused: not acceptable as HTTP");
    refuseConnection(socket, code, connections.firstReply(socket), options);
  };
  const plain =
    app.plain === undefined || options.socketParser === false
      ? undefined
      : plainWay(underRules(app.plain, browsers), limits.requestMs, {
          ...options,
          turn: fair && ((head) => fair.turn(() => head)),
          refuse,
          isClosing: () => closing,
        });
  const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    if (closing) outgoing.shouldKeepAlive = false;
    options.counts?.begin(incoming, outgoing, measuredBytes(incoming));
    connections.answer(incoming.socket, outgoing, () => inTurn(fair, incoming, () => begin(incoming, outgoing)));
  };
  const begin = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    if (incoming.rawHeaders.length > 2 * maxHeaders) refuseHeaders(incoming, outgoing);
    else if (passes(browsers, incoming, outgoing, options.audit) && app.direct?.(incoming, outgoing) !== true) {
      listener(incoming, outgoing);
    }
  };

  const classes = options.access?.classes ?? (options.counts && measuredClasses);
  const make = (): Server | TlsServer => {
    const server = nodeServer(options.certificates, Math.max(uploadMs, limits.requestMs), classes);
    server.on("request", onRequest);
    const toNode = meetConnections(server, { connections, plain, log: options.log });
    if (webSockets !== undefined) {
      server.on("upgrade", (incoming: IncomingMessage, duplex: Duplex, head: Buffer) => {
        if (webSockets.takes(incoming)) endWithSocket(incoming, duplex);
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
      connections.cutAll();
      webSockets?.terminate();
    }, graceMs);
    await closed;
    clearTimeout(cut);
    connections.close();
    plain?.close();
  };
  return { port: (server.address() as AddressInfo).port, close };
}

/** The framework's way to answer. */
function listenerOf(app: GatewayApp, log: Log): (incoming: IncomingMessage, outgoing: ServerResponse) => void {
  /** The request whose head the framework reads now. */
  let asking: IncomingMessage | undefined;
  const listener = getRequestListener(app.fetch, {
    overrideGlobalObjects: false,
    errorHandler: (error) => refuseTarget(error, asking && factsOf(asking), log),
  });
  return (incoming, outgoing) => {
    asking = incoming;
    void listener(incoming, outgoing);
    asking = undefined;
  };
}

/** Connections whose next request had its turn before node's server got it. */
const hadTurn = new WeakSet<Duplex>();

/** Begins a request now or, if many others have come, in its tenant's turn. */
function inTurn(fair: FairStart | undefined, incoming: IncomingMessage, begin: () => void): void {
  const turn = hadTurn.delete(incoming.socket) ? undefined : fair?.turn(() => askingOf(incoming));
  if (turn === undefined) return begin();
  void turn.then(() => {
    if (incoming.socket.writable) begin();
  });
}

/** A WebSocket has no response of node's, whose end would end its facts. */
function endWithSocket(incoming: IncomingMessage, duplex: Duplex): void {
  const facts = factsOf(incoming);
  // The WebSocket's own listeners come later, and note the last facts.
  if (facts !== undefined) duplex.once("close", () => process.nextTick(() => facts.end()));
}

function openWebSocket(
  webSockets: WebSocketEndpoint,
  { browsers = usualBrowsers, audit, counts }: Pick<ServerOptions, "browsers" | "audit" | "counts">,
  incoming: IncomingMessage,
  duplex: Duplex,
  rest: Buffer,
): void {
  const refusal = webSocketRefusal(browsers, incoming, audit);
  counts?.beginUpgrade(incoming);
  if (refusal === undefined) void webSockets.accept(incoming, duplex, rest);
  else refuseWebSocket(duplex, incoming, refusal);
}

/**
 * Connections meet node's own listeners later: for TLS if there is room, for HTTP only if a request
 * on them is not plain.
 * @returns a function that gives a connection to node's HTTP server
 */
function meetConnections(
  server: Server | TlsServer,
  { connections, plain, log }: { connections: Connections; plain: PlainConnections | undefined; log: Log },
): (socket: Duplex) => void {
  const toTls = "setSecureContext" in server ? takeListeners(server, "connection") : undefined;
  const toNode = takeListeners(server, toTls === undefined ? "connection" : "secureConnection");
  const serve = (socket: Socket): void => {
    connections.add(socket);
    if (plain === undefined) toNode(socket);
    else {
      plain.add(socket, (one, itsTurn) => {
        if (itsTurn) hadTurn.add(one);
        toNode(one);
      });
    }
  };
  server.on("connection", (socket: Socket) => {
    if (connections.admit(socket)) (toTls ?? serve)(socket);
  });
  if (toTls !== undefined) {
    server.on("secureConnection", serve);
    // Node would take it for an error of HTTP, which deserves an answer. This client reads none.
    server.removeAllListeners("tlsClientError");
    server.on("tlsClientError", ({ code }: NodeJS.ErrnoException, socket: Socket) => {
      log({ reason: code }, "connection refused: no handshake of TLS");
      socket.destroy();
    });
  }
  return toNode;
}

/** Takes node's listeners off a server's event, and returns a function that calls them. */
function takeListeners(server: Server | TlsServer, event: string): (socket: Duplex) => void {
  const listeners = server.listeners(event);
  server.removeAllListeners(event);
  return (socket) => listeners.forEach((listener) => Reflect.apply(listener, server, [socket]));
}

/** A server of node without any routes. */
function nodeServer(
  certificates: Certificates | undefined,
  requestTimeout: number,
  classes: AccessLog["classes"] | undefined,
): Server | TlsServer {
  const options = {
    ...classes,
    headersTimeout: headersTimeoutMs,
    requestTimeout,
    keepAliveTimeout: keepAliveTimeoutMs,
    connectionsCheckingInterval: checkEveryMs,
    // The app refuses a request without Host later, because its reply has our form.
    requireHostHeader: false,
  };
  const server = certificates?.server({ ...options, handshakeTimeout: headersTimeoutMs }) ?? createServer(options);
  // Node drops header fields beyond its limit silently. A limit of one more than ours shows a
  // request that has too many.
  server.maxHeadersCount = maxHeaders + 1;
  return server;
}

/** The way of requests that are parsed on the socket. */
function plainWay(
  route: PlainRoute,
  requestMs: number,
  {
    log,
    counts,
    access,
    turn,
    refuse,
    isClosing,
  }: Pick<ServerOptions, "log" | "counts" | "access"> & Pick<Surroundings, "turn" | "refuse" | "isClosing">,
): PlainConnections {
  const onFailure = (error: unknown): void => log({ err: error }, "request handler failed");
  const times = { headMs: headersTimeoutMs, requestMs, keepAliveMs: keepAliveTimeoutMs };
  return new PlainConnections({ route, counts, turn, refuse, onFailure, isClosing, access }, times, checkEveryMs);
}

/** The route without requests that the rules for browsers refuse. No plain request names a page. */
function underRules(route: PlainRoute, rules: BrowserRules): PlainRoute {
  const page = { origin: undefined, site: undefined, acts: true };
  const allows = (authority: string | undefined): boolean => judge(rules, { authority, ...page }).said === "allowed";
  return {
    takes: (head) => route.takes(head) && allows(head.headers.host),
    routeOf: (head) => route.routeOf(head),
    find: (head, facts) => route.find(head, facts),
  };
}

/**
 * Answers errors before the app has the request: no Host, or a Host or target that makes no URL.
 * Any other error that gets here is a bug.
 */
function refuseTarget(error: unknown, facts: AnswerFacts | undefined, log: Log): Response {
  const requestId = chooseRequestId({});
  if (!(error instanceof RequestError)) log({ err: error, requestId }, "request handler failed");
  const reply = errorReply(error instanceof RequestError ? fixedError("invalid_argument", "malformedHttp") : error);
  countRefusal(reply);
  const { status, headers, body, code } = reply;
  if (facts !== undefined) facts.code = code;
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
