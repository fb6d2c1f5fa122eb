/**
 * The figures of the gateway's HTTP: requests by route, their times, and refusals. A route is the
 * declared pattern of a path, so no text of a client becomes a label.
 */
import type { ServerResponse } from "node:http";
import type { ErrorCode } from "#shared/errors.js";
import { cells, type Buckets, type Cell } from "#shared/metrics/cells.js";

/** The route of a request that no declared path matches. */
const NONE = "none";
const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
/** The paths of jobs, and of what they make. */
const JOBS = /^\/v2\/(?:jobs|schedules|webhooks|deliveries|dead)\b|\/jobs\b/;
const OWN = /^\/v2\/(?:fleet|requests|settings|keys|tenants|tickets|usage|subscriptions)\b|^\/openapi|^\/asyncapi/;

/** The routes of responses that are under way. */
const routes = new WeakMap<ServerResponse, string>();

/** @param route the pattern of the path */
export function noteRoute(outgoing: ServerResponse, route: string): void {
  routes.set(outgoing, route);
}

const refusals = new Map<ErrorCode, Cell>();

/** Counts an error answer. */
export function countRefusal({ code, status }: { readonly code?: ErrorCode; readonly status: number }): void {
  if (code === undefined || status < 400) return;
  let cell = refusals.get(code);
  if (cell === undefined) refusals.set(code, (cell = cells.counter("baton_refusals_total", { code })));
  cells.add(cell);
}

/** The cells of a route. */
interface Route {
  readonly seconds: Buckets;
  /** By method, the cells of the classes of statuses: at 2 the cell of `2xx`. */
  readonly answers: Map<string, (Cell | undefined)[]>;
}

export class HttpCounts {
  readonly #routes = new Map<string, Route>();
  #open = 0;

  constructor() {
    cells.show("baton_http_requests_open", {}, () => this.#open);
  }

  /** To be called when a request has begun at node's server. */
  begin(method: string | undefined, outgoing: ServerResponse): void {
    const since = performance.now();
    this.#open++;
    outgoing.once("close", () => {
      this.#open--;
      // The client has left before it had an answer.
      if (!outgoing.headersSent) return;
      this.answered(routes.get(outgoing) ?? NONE, method, outgoing.statusCode, performance.now() - since);
    });
  }

  /** Counts the refusal with which a connection ends, if its bytes are no request. */
  connectionRefused(status: number): void {
    this.answered(NONE, undefined, status, 0);
  }

  answered(path: string, method: string | undefined, status: number, ms: number): void {
    const route = this.#routes.get(path) ?? this.#add(path);
    cells.observe(route.seconds, ms / 1_000);
    const kind = Math.floor(status / 100);
    const known = method === undefined ? undefined : route.answers.get(method)?.[kind];
    const cell = known ?? cellOf(path, route, method ?? "", kind);
    cells.add(cell);
  }

  #add(path: string): Route {
    const seconds = cells.histogram("baton_http_request_duration_seconds", { protocol: protocolOf(path) });
    const route = { seconds, answers: new Map<string, (Cell | undefined)[]>() };
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
  if (JOBS.test(route)) return "jobs";
  return OWN.test(route) ? "own" : "kserve";
}
