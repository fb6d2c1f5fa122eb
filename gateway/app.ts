/**
 * Builds the Hono app from its options. The builder opens nothing and reads no environment. Hono
 * finds the handler of each request, except for requests that take the short way
 * (kserve/http/direct.ts). Handlers read bodies from node's request and write replies to node's
 * response, because Web streams would cost more than all the rest of a small inference.
 */
import { Hono } from "hono";
import { fixedError } from "#shared/errors.js";
import { addBatchRoutes, type BatchRoutesOptions } from "./batches/routes.js";
import { addOpenAiRoutes } from "./openai/routes.js";
import type { Requests } from "./requests/requests.js";
import type { Jobs } from "./job-paths/jobs.js";
import { addJobRoutes } from "./job-paths/routes.js";
import { addSequenceRoutes } from "./sequences/routes.js";
import type { Sequences } from "./sequences/sequences.js";
import { addAsyncApiRoute, addRequestRoutes } from "./requests/routes.js";
import { Bodies } from "./http/bodies.js";
import { directRoute, type DirectRoute } from "./kserve/http/direct.js";
import { chooseRequestId } from "./http/headers.js";
import { pathOf, Router, type GatewayEnv, type Log } from "./http/router.js";
import { errorReply } from "./http/errors.js";
import { send } from "./http/send.js";
import { onlyTenant, type TenantOf } from "./http/tenant.js";
import type { ParseThread } from "./kserve/http/parse-thread.js";
import { RequestReader } from "./kserve/http/request-reader.js";
import { TensorPrinter } from "./kserve/http/tensor-printer.js";
import type { Files } from "./files/files.js";
import { addFileRoutes } from "./files/routes.js";
import { addScheduleRoutes, type ScheduleRoutesOptions } from "./schedules/routes.js";
import { addSubscriptionRoutes } from "./subscriptions/routes.js";
import type { Subscriptions } from "./subscriptions/subscriptions.js";
import { addWebhookRoutes, type WebhookRoutesOptions } from "./webhooks/routes.js";
import { addKserveRoutes, type KserveRoutesOptions } from "./kserve/http/routes.js";

export interface AppOptions extends Omit<KserveRoutesOptions, "bodies" | "reader" | "printer" | "tenantOf"> {
  /** By default all clients are one tenant. */
  readonly tenantOf?: TenantOf;
  readonly log: Log;
  /** Undefined if no request outlives its answer. Then the app has no paths for requests. */
  readonly requests?: Requests;
  /** Undefined if no client reads from NATS. */
  readonly subscriptions?: Subscriptions;
  /** Undefined if the app has no paths for sequences. */
  readonly sequences?: Sequences;
  /** Undefined if the app takes no jobs. */
  readonly jobs?: Jobs;
  /** Undefined if the app takes no schedules of jobs. */
  readonly schedules?: ScheduleRoutesOptions;
  /** Undefined if the deployment has no webhooks. */
  readonly webhooks?: WebhookRoutesOptions;
  /** Undefined if the app keeps no files. */
  readonly files?: Files;
  /** Undefined if the app takes no batches. */
  readonly batches?: BatchRoutesOptions;
  readonly bodies?: Bodies;
  /** If absent, the main thread parses all bodies. */
  readonly parseThread?: ParseThread;
  /** If absent, the main thread prints all tensors. */
  readonly printThread?: ParseThread;
}

/** In characters. A longer path in the log is cut, because clients choose paths. */
const maxLoggedPath = 2048;

/**
 * The app as a server uses it: `direct`, the short way, comes first, and then the framework's
 * `fetch`.
 */
export type GatewayApp = Hono<GatewayEnv> & { readonly direct: DirectRoute };

export function buildApp(options: AppOptions): GatewayApp {
  const app = new Hono<GatewayEnv>({ getPath: pathAsSent });
  const router = new Router(app, (error, c) => {
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
  const tenantOf = options.tenantOf ?? onlyTenant;
  const reader = new RequestReader(options.parseThread);
  const printer = new TensorPrinter(options.printThread);
  addKserveRoutes(router, { ...options, bodies, reader, printer, tenantOf });
  if (options.requests !== undefined) addRequestRoutes(router, options.requests, tenantOf);
  if (options.subscriptions !== undefined) {
    addSubscriptionRoutes(router, { ...options, subscriptions: options.subscriptions, bodies, tenantOf });
  }
  addAsyncApiRoute(router, options.version);
  if (options.sequences !== undefined) {
    addSequenceRoutes(router, { ...options, sequences: options.sequences, bodies, tenantOf });
  }
  if (options.jobs !== undefined) addJobRoutes(router, { ...options, jobs: options.jobs, bodies, tenantOf });
  if (options.jobs !== undefined && options.schedules !== undefined) {
    addScheduleRoutes(router, options.schedules, { ...options, jobs: options.jobs, bodies, tenantOf });
  }
  if (options.webhooks !== undefined) {
    addWebhookRoutes(router, options.webhooks, { bodies, limits: options.limits, tenantOf });
  }
  if (options.batches !== undefined) {
    addBatchRoutes(router, options.batches, { bodies, limits: options.limits, tenantOf });
  }
  if (options.files !== undefined) addFileRoutes(router, options.files, tenantOf);
  addOpenAiRoutes(router, { ...options, bodies, tenantOf });
  app.notFound((c) => send(c.env.outgoing, errorReply(fixedError("not_found", "usual"))));
  app.onError((error, c) => router.refuse(error, c));
  const direct = directRoute({
    fleet: options.fleet,
    tenantOf,
    inference: options.inference,
    limits: options.limits,
    bodies,
    reader,
    printer,
    onBug(error, { method, url = "" }, requestId) {
      options.log({ err: error, requestId, method, path: url.slice(0, maxLoggedPath) }, "request handler failed");
    },
  });
  return Object.assign(app, { direct });
}

function pathAsSent(request: Request, options?: { env?: GatewayEnv["Bindings"] }): string {
  return pathOf(options?.env?.incoming.url ?? request.url);
}
