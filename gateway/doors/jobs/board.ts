/**
 * Bull Board: a page that shows the BullMQ queues to operators. The board has its own port, is off
 * by default, and needs the token. Operators may retry jobs, run jobs now, pause and resume. They
 * may not add, change or remove jobs: the state of a delivery is in its record, and its job in the
 * queue is only an alarm clock (decision 31).
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { HonoAdapter } from "@bull-board/hono";
import { serveStatic } from "@hono/node-server/serve-static";
import type { Queue } from "bullmq";
import { Hono, type Context } from "hono";
import { basicAuth } from "hono/basic-auth";
import { errorKinds } from "#shared/errors.js";
import type { Audit } from "../../auth/audit.js";
import type { BrowserRules } from "#shared/listening/browsers.js";
import { Peers } from "../../http/peers.js";
import { RequestAudit } from "../../http/request-audit.js";
import type { GatewayEnv, Log } from "../../http/router.js";
import { startServer, type RunningServer } from "../../server.js";

export interface BoardSettings {
  /** 0 takes any free port. */
  readonly port: number;
  readonly host: string;
  /** The password of the board, with any user name. */
  readonly token: string;
  /** All queues of the process. */
  readonly queues: readonly Queue[];
  readonly audit: Audit;
  readonly log: Log;
}

/** Pages of other origins may send no requests here, not even pages of this machine. */
const browsers: BrowserRules = { hosts: [], origins: [] };
/** Most connections. Few people use the board, each with few connections. */
const CONNECTIONS = 64;
/** Allowed requests other than reads, by the path below `/api/queues`. */
const allowed = [
  /^\/(?:pause|resume)$/,
  /^\/[^/]+\/(?:pause|resume|promote|retry\/failed)$/,
  /^\/[^/]+\/(?:[^/]+|job-schedulers\/[^/]+)\/(?:retry|promote|run)$/,
];
/** The page has inline styles. It asks other hosts for fonts, which these headers refuse. */
const headers = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; " +
    "connect-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
};

export function startBoard({ port, host, token, queues, audit, log }: BoardSettings): Promise<RunningServer> {
  const adapter = new HonoAdapter(serveStatic);
  createBullBoard({
    queues: queues.map((queue) => new BullMQAdapter(queue)),
    serverAdapter: adapter,
    options: { uiConfig: { boardTitle: "Baton" } },
  });
  const app = new Hono<GatewayEnv>();
  app.use(async (c, next) => {
    await next();
    for (const [name, value] of Object.entries(headers)) c.res.headers.set(name, value);
  });
  const expected = digest(token);
  const requests = new RequestAudit(audit, new Peers());
  const verifyUser = (_user: string, password: string, c: Context<GatewayEnv>): boolean => {
    const isRight = timingSafeEqual(digest(password), expected);
    if (!isRight) requests.boardRefused(c.env.incoming);
    return isRight;
  };
  app.use(basicAuth({ realm: "Baton", verifyUser }));
  app.use(async (c, next) => {
    if (!mayAsk(c.req.method, c.req.path)) return c.json({ error: errorKinds.forbidden.texts.board }, 403);
    return next();
  });
  app.route("/", adapter.registerPlugin());
  app.onError((error, c) => {
    if ("getResponse" in error) return error.getResponse();
    log({ err: error, method: c.req.method }, "the board has failed");
    return c.json({ error: errorKinds.internal.texts.usual }, 500);
  });
  const limits = { connections: CONNECTIONS };
  return startServer(app, { port, host, log, browsers, audit: requests, limits });
}

/** Whether a caller with the token may send this request. */
export function mayAsk(method: string, path: string): boolean {
  if (method === "GET" || method === "HEAD") return true;
  const below = /^\/api\/queues(\/.*)$/.exec(path)?.[1];
  return method === "PUT" && below !== undefined && allowed.some((form) => form.test(below));
}

/** All digests have one length, so every comparison takes the same time. */
function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
