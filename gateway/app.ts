/**
 * Builds the Hono app from its options. The builder opens nothing and reads no environment. Hono
 * finds the handler of each request, except for requests that take the short way
 * (doors/kserve-http/direct.ts). Handlers read bodies from node's request and write replies to
 * node's response, because Web streams would cost more than all the rest of a small inference.
 */
import { Hono } from "hono";
import { InferenceError } from "#shared/errors.js";
import { directRoutes, type DirectRoutes } from "./doors/kserve-http/direct.js";
import { groups, type AppParts } from "./endpoints.js";
import type { ParseThread } from "./formats/kserve/parse-thread.js";
import { RequestReader } from "./formats/kserve/request-reader.js";
import { TensorPrinter } from "./formats/kserve/tensor-printer.js";
import { Bodies } from "./http/bodies.js";
import { chooseRequestId } from "./http/headers.js";
import { pathOf, Router, type GatewayEnv, type Log } from "./http/router.js";
import { openGuard, type Guard } from "./http/guard.js";
import type { FrontDoor } from "./http/traces/front-door.js";

export interface AppOptions extends Omit<AppParts, "bodies" | "reader" | "printer"> {
  /** By default all clients are one tenant, and need no key. */
  readonly guard?: Guard;
  readonly log: Log;
  /** Absent if the gateway makes no traces. */
  readonly frontDoor?: FrontDoor | undefined;
  readonly bodies?: Bodies;
  /** If absent, the main thread parses all bodies. */
  readonly parseThread?: ParseThread;
  /** By default, the main thread prints all tensors. */
  readonly printer?: TensorPrinter;
}

/** In characters. A longer path in the log is cut, because clients choose paths. */
const maxLoggedPath = 2048;

/** The app as a server uses it: the short ways come first, and then the framework's `fetch`. */
export type GatewayApp = Hono<GatewayEnv> & Partial<DirectRoutes>;

export function buildApp(options: AppOptions): GatewayApp {
  const app = new Hono<GatewayEnv>({ getPath: pathAsSent });
  const guard = options.guard ?? openGuard();
  const router = new Router(app, guard, (error, c) => {
    const path = c.req.path.slice(0, maxLoggedPath);
    options.log({ err: error, requestId: c.get("requestId"), method: c.req.method, path }, "request handler failed");
  });

  app.use(async (c, next) => {
    const requestId = chooseRequestId(c.env.incoming.headers);
    c.set("requestId", requestId);
    c.env.outgoing.setHeader("x-request-id", requestId);
    await next();
  });
  const bodies = options.bodies ?? new Bodies();
  const reader = new RequestReader(options.parseThread);
  const printer = options.printer ?? new TensorPrinter(undefined);
  const { limits, frontDoor } = options;
  const parts = { ...options, bodies, reader, printer };
  for (const group of groups) group.addTo(router, parts, { bodies, limits, guard, frontDoor });
  router.refuseAll(
    "/v1/:rest{.+}",
    (c) => new InferenceError("not_found", `Unknown request URL: ${c.req.method} ${c.req.path}`),
  );
  app.notFound((c) => router.refuseUnknown(c));
  app.onError((error, c) => router.refuse(error, c));
  const direct = directRoutes({
    fleet: options.fleet,
    guard,
    inference: options.inference,
    limits,
    bodies,
    reader,
    printer,
    frontDoor,
    onBug(error, target, requestId) {
      const path = target.slice(0, maxLoggedPath);
      options.log({ err: error, requestId, method: "POST", path }, "request handler failed");
    },
  });
  return Object.assign(app, direct);
}

function pathAsSent(request: Request, options?: { env?: GatewayEnv["Bindings"] }): string {
  return pathOf(options?.env?.incoming.url ?? request.url);
}
