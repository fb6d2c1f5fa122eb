/**
 * Builds the Hono app from its options. The builder opens nothing and reads no environment. Hono
 * finds the handler of each request, except for requests that take the short way
 * (doors/kserve-http/direct.ts). Handlers read bodies from node's request and write replies to
 * node's response, because Web streams would cost more than all the rest of a small inference.
 */
import { Hono } from "hono";
import { fixedError, InferenceError } from "#shared/errors.js";
import { addEndpoints } from "./api/add-endpoints.js";
import { batchEndpoints } from "./api/batches.js";
import { deadEndpoints } from "./api/dead.js";
import { deliveryEndpoints } from "./api/deliveries.js";
import { documentEndpoints, type ApiDocument } from "./api/document.js";
import type { Endpoint } from "./api/endpoint.js";
import { fileEndpoints } from "./api/files.js";
import { fleetEndpoints } from "./api/fleet.js";
import { jobEndpoints } from "./api/jobs.js";
import { openApi } from "./api/openapi.js";
import { scheduleEndpoints } from "./api/schedules.js";
import { sequenceEndpoints } from "./api/sequences.js";
import { asyncApi, asyncApiEndpoints } from "./api/streams/asyncapi.js";
import { subscriptionEndpoints } from "./api/subscriptions.js";
import { webhookEndpoints } from "./api/webhooks.js";
import { directRoute, type DirectRoute } from "./doors/kserve-http/direct.js";
import { kserveEndpoints, type KserveParts } from "./doors/kserve-http/endpoints.js";
import { openAiEndpoints } from "./doors/openai/endpoints.js";
import { endpoints, ofRequests } from "./endpoints.js";
import { errorReply } from "./formats/errors.js";
import type { ParseThread } from "./formats/kserve/parse-thread.js";
import { RequestReader } from "./formats/kserve/request-reader.js";
import { TensorPrinter } from "./formats/kserve/tensor-printer.js";
import { Bodies } from "./http/bodies.js";
import { chooseRequestId } from "./http/headers.js";
import { pathOf, Router, type GatewayEnv, type Log } from "./http/router.js";
import { send } from "./http/send.js";
import { onlyTenant, type TenantOf } from "./http/tenant.js";
import type { Services } from "./service/services.js";

/** The app has no paths for a service that is absent. */
export interface AppOptions
  extends Omit<KserveParts, "bodies" | "reader" | "printer">, Partial<Omit<Services, "fleet" | "inference">> {
  /** By default all clients are one tenant. */
  readonly tenantOf?: TenantOf;
  readonly log: Log;
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
  const { limits, version } = options;
  const add = <S>(declared: readonly Endpoint<S>[], service: S | undefined): void => {
    if (service !== undefined) addEndpoints(router, declared, service, { bodies, limits, tenantOf });
  };
  add(kserveEndpoints, { ...options, bodies, reader, printer });
  add(fleetEndpoints, options.fleet);
  add(ofRequests, options.requests);
  add(subscriptionEndpoints, options.subscriptions);
  add(asyncApiEndpoints, { text: JSON.stringify(asyncApi(version)) });
  add(documentEndpoints, documentOf(version));
  add(sequenceEndpoints, options.sequences);
  add(jobEndpoints, options.jobs && { jobs: options.jobs, printer });
  add(deadEndpoints, options.dead);
  add(scheduleEndpoints, options.schedules);
  add(webhookEndpoints, options.webhooks);
  add(deliveryEndpoints, options.deliveries);
  add(batchEndpoints, options.batches);
  add(fileEndpoints, options.files);
  add(openAiEndpoints, options);
  router.addForAll("/v1/:rest{.+}", (c) => {
    throw new InferenceError("not_found", `Unknown request URL: ${c.req.method} ${c.req.path}`);
  });
  app.notFound((c) => send(c.env.outgoing, errorReply(fixedError("not_found", "usual"))));
  app.onError((error, c) => router.refuse(error, c));
  const direct = directRoute({
    fleet: options.fleet,
    tenantOf,
    inference: options.inference,
    limits,
    bodies,
    reader,
    printer,
    onBug(error, { method, url = "" }, requestId) {
      options.log({ err: error, requestId, method, path: url.slice(0, maxLoggedPath) }, "request handler failed");
    },
  });
  return Object.assign(app, { direct });
}

/** Makes the document at its first request. */
function documentOf(version: string): ApiDocument {
  let text: string | undefined;
  return {
    get text() {
      text ??= JSON.stringify(openApi(endpoints, version));
      return text;
    },
  };
}

function pathAsSent(request: Request, options?: { env?: GatewayEnv["Bindings"] }): string {
  return pathOf(options?.env?.incoming.url ?? request.url);
}
