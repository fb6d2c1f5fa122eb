/**
 * The figures of the gateway's HTTP: requests by route, their times, and refusals. A route is the
 * declared pattern of a path, so no text of a client becomes a label.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { ErrorCode } from "#shared/errors.js";
import { cells, type Buckets, type Cell } from "#shared/metrics/cells.js";

/** The route of a request that no declared path matches. */
const NONE = "none";
const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
/** The paths of jobs, and of what they make. */
const JOBS = /^\/v2\/(?:jobs|schedules|webhooks|deliveries|dead)\b|\/jobs\b/;
/** The methods of gRPC's services. */
const GRPC = /^\/(?:inference|grpc)\./;
const OWN = /^\/v2\/(?:fleet|requests|settings|keys|tenants|tickets|usage|subscriptions)\b|^\/openapi|^\/asyncapi/;

/** What is known of an answer that is under way. */
interface Notes {
  route: string;
  /** A model that some worker serves. */
  model: string;
}

const notes = new WeakMap<ServerResponse, Notes>();

/** @param route the pattern of the path */
export function noteRoute(outgoing: ServerResponse, route: string): void {
  const known = notes.get(outgoing);
  if (known === undefined) notes.set(outgoing, { route, model: "" });
  else known.route = route;
}

/** @param model that the request is for, and that some worker serves */
export function noteModel(outgoing: ServerResponse, model: string): void {
  const known = notes.get(outgoing);
  if (known === undefined) notes.set(outgoing, { route: NONE, model });
  else known.model = model;
}

/** The model of a request; empty if the request has none that is known. */
export function modelOf(outgoing: ServerResponse): string {
  return notes.get(outgoing)?.model ?? "";
}

/** By the code and then the model. */
const refusals = new Map<ErrorCode, Map<string, Cell>>();

/** An answer, as far as its refusal counts. */
interface Refusal {
  readonly code?: ErrorCode;
  readonly status: number;
}

/**
 * Counts an error answer.
 * @param model that the request was for; empty if it is unknown
 */
export function countRefusal({ code, status }: Refusal, model = ""): void {
  if (code === undefined || status < 400) return;
  let ofModel = refusals.get(code);
  if (ofModel === undefined) refusals.set(code, (ofModel = new Map<string, Cell>()));
  let cell = ofModel.get(model);
  if (cell === undefined) {
    const labels = { code, model: model === "" ? model : cells.modelName(model) };
    ofModel.set(model, (cell = cells.counter("baton_refusals_total", labels)));
  }
  cells.add(cell);
}

/** The statuses of upgrades that were refused. */
const refusedUpgrades = new WeakMap<Duplex, number>();

export function noteRefusedUpgrade(socket: Duplex, status: number): void {
  refusedUpgrades.set(socket, status);
}

/** The bytes of bodies on the wire, as the access log or a measured exchange has noted them. */
export interface BodyBytes {
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** The status of an answer that opens a WebSocket. */
const SWITCHING = 101;
/** The declared path of WebSockets. */
const UPGRADE_ROUTE = "/v2/requests/:id/ws";

/** The cells of a route. */
interface Route {
  readonly seconds: Buckets;
  readonly bytesIn: Cell;
  readonly bytesOut: Cell;
  /** By method, the cells of the classes of statuses: at 2 the cell of `2xx`. */
  readonly answers: Map<string, (Cell | undefined)[]>;
}

export class HttpCounts {
  readonly #routes = new Map<string, Route>();
  #open = 0;

  constructor() {
    cells.show("baton_http_requests_open", {}, () => this.#open);
  }

  /** Shows the open connections, and the bytes that their clients have not read. */
  show(connections: { readonly size: number; readonly unreadBytes: number }): void {
    cells.show("baton_http_connections", {}, () => connections.size);
    cells.show("baton_http_unread_bytes", {}, () => connections.unreadBytes);
  }

  /** To be called when a request that is parsed on the socket begins (1) or ends (-1). */
  open(more: 1 | -1): void {
    this.#open += more;
  }

  /**
   * To be called when a request has begun at node's server.
   * @param bytes counted until the answer ends
   */
  begin({ method }: IncomingMessage, outgoing: ServerResponse, bytes: BodyBytes | undefined): void {
    const since = performance.now();
    this.#open++;
    outgoing.once("close", () => {
      this.#open--;
      // The client has left before it had an answer.
      if (!outgoing.headersSent) return;
      const route = notes.get(outgoing)?.route ?? NONE;
      this.answered(route, method, outgoing.statusCode, performance.now() - since, bytes);
    });
  }

  /** To be called when a WebSocket is to open, whose bytes are those of the whole connection. */
  beginUpgrade({ method, socket }: IncomingMessage): void {
    const since = performance.now();
    const before = socket.bytesWritten;
    this.#open++;
    socket.once("close", () => {
      this.#open--;
      const bytes = { bytesIn: 0, bytesOut: socket.bytesWritten - before };
      const status = refusedUpgrades.get(socket) ?? SWITCHING;
      this.answered(UPGRADE_ROUTE, method, status, performance.now() - since, bytes);
    });
  }

  /** Counts the refusal with which a connection ends, if its bytes are no request. */
  connectionRefused(status: number): void {
    this.answered(NONE, undefined, status, 0);
  }

  answered(path: string, method: string | undefined, status: number, ms: number, bytes?: BodyBytes): void {
    const route = this.#routes.get(path) ?? this.#add(path);
    if (bytes !== undefined) {
      cells.add(route.bytesIn, bytes.bytesIn);
      cells.add(route.bytesOut, bytes.bytesOut);
    }
    cells.observe(route.seconds, ms / 1_000);
    const kind = Math.floor(status / 100);
    const known = method === undefined ? undefined : route.answers.get(method)?.[kind];
    const cell = known ?? cellOf(path, route, method ?? "", kind);
    cells.add(cell);
  }

  #add(path: string): Route {
    const protocol = protocolOf(path);
    const route = {
      seconds: cells.histogram("baton_http_request_duration_seconds", { protocol }),
      bytesIn: cells.counter("baton_http_request_bytes_total", { protocol }),
      bytesOut: cells.counter("baton_http_response_bytes_total", { protocol }),
      answers: new Map<string, (Cell | undefined)[]>(),
    };
    this.#routes.set(path, route);
    return route;
  }
}

/** Makes the cell of a class of statuses. Methods that HTTP does not have share one. */
function cellOf(path: string, { answers }: Route, method: string, kind: number): Cell {
  const isKnown = methods.has(method);
  const labels = { route: path, method: isKnown ? method : "other", status: `${kind}xx` };
  const cell = cells.counter("baton_http_requests_total", labels);
  if (!isKnown) return cell;
  const found = answers.get(method) ?? [];
  found[kind] = cell;
  answers.set(method, found);
  return cell;
}

function protocolOf(route: string): string {
  if (route.startsWith("/v1/")) return "openai";
  if (GRPC.test(route)) return "grpc";
  if (JOBS.test(route)) return "jobs";
  return OWN.test(route) ? "own" : "kserve";
}
