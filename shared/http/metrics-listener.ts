/**
 * Answers Prometheus over HTTP, on a port of its own, so that clients of the gateway never see the
 * figures of other tenants. The listener asks neither Redis nor NATS, reads no body, and stays open
 * until the process ends.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from "node:http";
import type { Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { judge } from "../listening/browsers.js";
import type { Certificates } from "./certificates.js";
import { CONTENT_TYPE } from "../metrics/page.js";

export interface ListenerOptions {
  /** 0 takes any free port. */
  readonly port: number;
  readonly host: string;
  /** If present, the listener speaks TLS alone. */
  readonly certificates: Certificates | undefined;
  /** Names by which readers may ask, besides names that no site can register. */
  readonly hosts: readonly string[];
  /** Whether a request may read the page. A failure counts as no. */
  readonly mayRead: (incoming: IncomingMessage) => boolean | Promise<boolean>;
  readonly page: () => Promise<string>;
  readonly onFailure: (error: unknown) => void;
}

/** Most connections. Beyond it the listener closes the oldest, which perhaps never reads. */
const CONNECTIONS = 64;
/** Longest time without a byte, and for a request, in ms. */
const PATIENCE_MS = 10_000;
const GZIP = { level: 1 };

export interface Listener {
  readonly port: number;
  close(): Promise<void>;
}

/** @throws the error of the system if the port cannot be had */
export async function startListener(options: ListenerOptions): Promise<Listener> {
  const answering = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    answer(incoming, outgoing, options).catch((error: unknown) => {
      options.onFailure(error);
      outgoing.destroy();
    });
  };
  const server = serverOf(options.certificates);
  server.on("request", answering);
  // Nothing is read, so nothing is worth waiting for.
  server.on("checkContinue", answering);
  server.on("connection", limiter());
  server.setTimeout(PATIENCE_MS);
  server.listen({ port: options.port, host: options.host, exclusive: true });
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function serverOf(certificates: Certificates | undefined): Server | TlsServer {
  const options: ServerOptions = { headersTimeout: PATIENCE_MS, requestTimeout: PATIENCE_MS };
  return certificates?.server({ ...options, handshakeTimeout: PATIENCE_MS }) ?? createServer(options);
}

/** Closes the oldest connection whenever there are too many. */
function limiter(): (socket: Socket) => void {
  const open = new Set<Socket>();
  return (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    const [oldest] = open;
    if (open.size > CONNECTIONS) oldest?.destroy();
  };
}

async function answer(incoming: IncomingMessage, outgoing: ServerResponse, options: ListenerOptions): Promise<void> {
  const { method, headers, url = "/" } = incoming;
  const hasBody = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
  if (hasBody) outgoing.shouldKeepAlive = false;
  const { host: authority, origin, "sec-fetch-site": site } = headers;
  const asked = { authority, origin, site: typeof site === "string" ? site : undefined, acts: false };
  const verdict = judge({ hosts: options.hosts, origins: [] }, asked);
  if (verdict.said === "malformed") return say(incoming, outgoing, 400, "The host has no valid form.\n");
  if (verdict.said === "refused") return say(incoming, outgoing, 403, `${verdict.message}\n`);
  if (method !== "GET" && method !== "HEAD") {
    outgoing.setHeader("allow", "GET, HEAD");
    return say(incoming, outgoing, 405, "The metrics are only for reading.\n");
  }
  const path = url.replace(/[?#].*$/, "");
  if (path === "/") return say(incoming, outgoing, 200, '<a href="metrics">metrics</a>\n', "text/html; charset=utf-8");
  if (path !== "/metrics") return say(incoming, outgoing, 404, "There is nothing but /metrics here.\n");
  if (!(await options.mayRead(incoming))) {
    outgoing.setHeader("www-authenticate", "Bearer");
    return say(incoming, outgoing, 401, "The metrics need a token.\n");
  }
  return say(incoming, outgoing, 200, await options.page(), CONTENT_TYPE);
}

async function say(
  { method, headers }: IncomingMessage,
  outgoing: ServerResponse,
  status: number,
  text: string,
  type = "text/plain; charset=utf-8",
): Promise<void> {
  const isZipped = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:\s*,|\s*$))/i.test(headers["accept-encoding"] ?? "");
  const body = isZipped ? await promisify(gzip)(text, GZIP) : Buffer.from(text);
  outgoing.writeHead(status, {
    "content-type": type,
    "content-length": body.length,
    ...(isZipped && { "content-encoding": "gzip" }),
    vary: "accept-encoding",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  outgoing.end(method === "HEAD" ? undefined : body);
}
