/** `/v2/requests/<id>`: reads the status and the records of a request, and ends the request. */
import type { Context } from "hono";
import { errorKinds, fixedError, type ErrorCode } from "#shared/errors.js";
import { errorReply } from "../http/errors.js";
import { emptyReply, noContent, withHeaders, type Reply } from "../http/reply.js";
import type { GatewayEnv, Router } from "../http/router.js";
import type { TenantOf } from "../http/tenant.js";
import { asyncApi } from "./asyncapi.js";
import { guardAnswer, readDurableStream, refuseWriting } from "./durable-stream.js";
import { resumeIndex, sendEvents } from "./events.js";
import type { Requests } from "./requests.js";

export function addRequestRoutes(router: Router, requests: Requests, tenantOf: TenantOf): void {
  router.add("/v2/requests/:id", {
    GET: async (c) => json((await requests.status(tenantOf(c.env.incoming), idOf(c))).json, 200),
    DELETE: async (c) => {
      const ended = await requests.cancel(tenantOf(c.env.incoming), idOf(c));
      return ended === undefined ? noContent : endedBefore(ended.state);
    },
  });
  router.add("/v2/requests/:id/detach", {
    POST: async (c) => {
      await requests.detach(tenantOf(c.env.incoming), idOf(c));
      return noContent;
    },
  });
  router.add("/v2/requests/:id/ws", {
    GET: () => {
      const reply = errorReply(fixedError("invalid_argument", "webSocketOnly"), "kserve", 426);
      return withHeaders(reply, { upgrade: "websocket" });
    },
  });
  router.add("/v2/requests/:id/events", {
    GET: async (c) => {
      const { incoming, outgoing } = c.env;
      const id = idOf(c);
      const cursor = await requests.open(tenantOf(incoming), id, resumeIndex(incoming));
      if (incoming.method === "HEAD") return withHeaders(emptyReply, { "content-type": "text/event-stream" });
      sendEvents(outgoing, id, cursor).catch((error: unknown) => router.onBug(error, c));
      return undefined;
    },
  });
  addDurableStream(router, requests, tenantOf);
}

/**
 * Adds the document of the subjects on NATS. The document says nothing of any tenant, so its
 * readers need not name theirs.
 */
export function addAsyncApiRoute(router: Router, version: string): void {
  const document = json(JSON.stringify(asyncApi(version)), 200);
  router.add("/v2/asyncapi.json", { GET: () => document });
}

function addDurableStream(router: Router, requests: Requests, tenantOf: TenantOf): void {
  router.add("/v2/requests/:id/stream", {
    GET: async (c) => {
      const { incoming, outgoing } = c.env;
      guardAnswer(outgoing);
      const id = idOf(c);
      const log = await requests.log(tenantOf(incoming), id);
      return readDurableStream({ id, log, onBug: (error) => router.onBug(error, c) }, incoming, outgoing);
    },
    PUT: refuseWriting,
    POST: refuseWriting,
    DELETE: refuseWriting,
  });
}

function idOf(c: Context<GatewayEnv>): string {
  return c.req.param("id") ?? "";
}

function json(body: string, status: number): Reply {
  return { status, headers: { "content-type": "application/json" }, body: [body] };
}

function endedBefore(state: string): Reply {
  const code: ErrorCode = "already_ended";
  const { status, texts } = errorKinds[code];
  return json(JSON.stringify({ error: texts.usual, code, state }), status);
}
