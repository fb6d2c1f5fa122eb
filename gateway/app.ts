/**
 * The Hono app, built from what it is given: it opens nothing and reads no environment. Hono finds the handler, but for the hot path's (v2/direct.ts); bodies are read from
 * node's request and replies are written to node's response, since Web streams would cost more than all the rest of a small infer.
 */
import { randomUUID } from "node:crypto";
import { Hono, type Context } from "hono";
import { InferenceError } from "#shared/errors.js";
import type { Generate, InferLater } from "./inference.js";
import { addOpenAiRoutes } from "./openai/routes.js";
import type { Requests } from "./requests/requests.js";
import { addRequestRoutes } from "./requests/routes.js";
import { Bodies } from "./v2/bodies.js";
import { directRoute, type DirectRoute } from "./v2/direct.js";
import { errorReply, refusalReply, send } from "./v2/reply.js";
import { addV2Routes, type GatewayEnv, type V2Options } from "./v2/routes.js";

/** As pino's methods: fields, then the line. */
export type Log = (fields: Readonly<Record<string, unknown>>, line: string) => void;

export interface AppOptions extends Omit<V2Options, "onBug" | "generate" | "inferLater" | "bodies"> {
  readonly log: Log;
  /** Absent where no request outlives its answer; so are the next. */
  readonly requests?: Requests;
  readonly inferLater?: InferLater;
  /** Absent until there is something to generate with. */
  readonly generate?: Generate;
  readonly bodies?: Bodies;
}

/** No field that a client chose grows a line of the log beyond this. */
const maxLoggedPath = 2048;

/** What a server needs: first the short way, then the framework's. */
export type GatewayApp = Hono<GatewayEnv> & { readonly direct: DirectRoute };

export function buildApp(options: AppOptions): GatewayApp {
  const app = new Hono<GatewayEnv>({ getPath: pathAsSent });
  const onBug = (error: unknown, c: Context<GatewayEnv>): void => {
    const path = c.req.path.slice(0, maxLoggedPath);
    options.log({ err: error, requestId: c.get("requestId"), method: c.req.method, path }, "request handler failed");
  };

  app.use(async (c, next) => {
    const requestId = chooseRequestId(c.env.incoming.headers["x-request-id"]);
    c.set("requestId", requestId);
    c.env.outgoing.setHeader("x-request-id", requestId);
    await next();
  });
  const generate = options.generate ?? (() => Promise.reject(new InferenceError("unavailable", "cannot generate")));
  const inferLater =
    options.inferLater ?? (() => Promise.reject(new InferenceError("unavailable", "cannot infer later")));
  const bodies = options.bodies ?? new Bodies();
  addV2Routes(app, { ...options, generate, inferLater, bodies, onBug });
  if (options.requests !== undefined) addRequestRoutes(app, { requests: options.requests, onBug });
  addOpenAiRoutes(app, { ...options, generate, bodies, onBug });
  app.notFound((c) => send(c.env.outgoing, errorReply("not_found", "Not Found")));
  app.onError((error, c) => {
    const refusal = refusalReply(error);
    if (refusal === undefined) onBug(error, c);
    return send(c.env.outgoing, refusal ?? errorReply("internal", "internal error"));
  });
  const direct = directRoute({
    ...options,
    generate,
    inferLater,
    bodies,
    chooseRequestId,
    find: (name, version) => options.directory().find(name, version),
    onBug(error, { method, url = "" }, requestId) {
      options.log({ err: error, requestId, method, path: url.slice(0, maxLoggedPath) }, "request handler failed");
    },
  });
  return Object.assign(app, { direct });
}

export function chooseRequestId(given: string | string[] | undefined): string {
  return typeof given === "string" && /^[A-Za-z0-9._-]{1,128}$/.test(given) ? given : randomUUID();
}

function pathAsSent(request: Request, options?: { env?: GatewayEnv["Bindings"] }): string {
  return pathOf(options?.env?.incoming.url ?? request.url);
}

/**
 * A target's path with nothing decoded or resolved, so that an escaped slash or dot never chooses
 * the route.
 */
export function pathOf(target: string): string {
  const path = target.startsWith("/") ? target : target.replace(/^[a-z]+:\/\/[^/?#]*/i, "");
  const end = path.search(/[?#]/);
  return end === -1 ? path : path.slice(0, end);
}
