/** `/v2/requests/<id>`: a request's state and outcome, its events, and its end. Each path answers the methods that it does not have with 405. */
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { Context, Hono } from "hono";
import { errorKinds, type ErrorCode } from "#shared/errors.js";
import { emptyReply, errorReply, send, type Reply } from "../v2/reply.js";
import type { GatewayEnv } from "../v2/routes.js";
import { firstWanted } from "./after.js";
import { sendEvents } from "./events.js";
import type { Requests } from "./requests.js";

/** Undefined where there is nothing to say: 204. */
type Handler = (c: Context<GatewayEnv>) => Promise<Reply | undefined>;

export interface RequestRoutesOptions {
  readonly requests: Requests;
  /** Told of each failure that is a bug and no refusal; the client reads nothing of it. */
  readonly onBug: (error: unknown, c: Context<GatewayEnv>) => void;
}

/** What handlers throw is answered by the app. */
export function addRequestRoutes(app: Hono<GatewayEnv>, { requests, onBug }: RequestRoutesOptions): void {
  const path = (rest: string, handlers: Readonly<Record<string, Handler>>): void => {
    for (const [method, handler] of Object.entries(handlers)) {
      app.on(method, `/v2/requests/:id${rest}`, async (c) => {
        const reply = await handler(c);
        if (reply !== undefined) return send(c.env.outgoing, reply);
        c.env.outgoing.writeHead(204).end();
        return RESPONSE_ALREADY_SENT;
      });
    }
    notAllowed(app, `/v2/requests/:id${rest}`);
  };

  path("", {
    GET: async (c) => json((await requests.status(idOf(c))).json, 200),
    DELETE: async (c) => {
      const ended = await requests.cancel(idOf(c));
      return ended && endedBefore(ended.state);
    },
  });
  path("/detach", {
    POST: async (c) => {
      await requests.detach(idOf(c));
      return undefined;
    },
  });
  path("/ws", {
    GET: () => {
      const reply = errorReply("invalid_argument", "this path is for WebSockets", 426);
      return Promise.resolve({ ...reply, headers: { ...reply.headers, upgrade: "websocket" } });
    },
  });
  app.get("/v2/requests/:id/events", async (c) => {
    const { incoming, outgoing } = c.env;
    const id = idOf(c);
    const cursor = await requests.open(id, firstWanted(incoming));
    if (incoming.method === "HEAD")
      return send(outgoing, { ...emptyReply, headers: { "content-type": "text/event-stream" } });
    sendEvents(outgoing, id, cursor).catch((error: unknown) => onBug(error, c));
    return RESPONSE_ALREADY_SENT;
  });
  notAllowed(app, "/v2/requests/:id/events");
}

function notAllowed(app: Hono<GatewayEnv>, path: string): void {
  app.all(path, (c) => send(c.env.outgoing, errorReply("method_not_allowed", "Method Not Allowed")));
}

function idOf(c: Context<GatewayEnv>): string {
  return c.req.param("id") ?? "";
}

function json(body: string, status: number): Reply {
  return { status, headers: { "content-type": "application/json" }, body: [body] };
}

function endedBefore(state: string): Reply {
  const code: ErrorCode = "already_ended";
  return json(JSON.stringify({ error: "the request has ended", code, state }), errorKinds[code].status);
}
