/** The paths of spec/http-v2.md section 1. Each also answers the methods that it does not have, with 405. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { Context, Hono } from "hono";
import type { Generate, Infer, InferLater } from "../inference.js";
import type { ModelDirectory } from "../models.js";
import { InferenceError } from "#shared/errors.js";
import type { Bodies } from "./bodies.js";
import type { ModelExchange } from "./exchange.js";
import { generateOverHttp, generateStreamOverHttp } from "./generate.js";
import { liveness, modelReadiness, readiness } from "./health.js";
import { inferOverHttp } from "./infer.js";
import type { Limits } from "./limits.js";
import { modelConfig, modelMetadata, serverMetadata } from "./metadata.js";
import { sharedMemoryDisabled } from "./parse-inputs.js";
import { errorReply, jsonReply, refusalReply, send, type Reply } from "./reply.js";
import { loadRefused, repositoryIndex } from "./repository.js";

export interface GatewayEnv {
  Bindings: { incoming: IncomingMessage; outgoing: ServerResponse };
  Variables: { requestId: string };
}

export interface V2Options {
  /** The fleet's models as known now. */
  readonly directory: () => ModelDirectory;
  readonly infer: Infer;
  readonly inferLater: InferLater;
  readonly generate: Generate;
  /** Whether requests can be admitted. */
  readonly isReady: () => boolean;
  /** What `GET /v2/fleet` shows. */
  readonly fleet: () => Promise<unknown>;
  readonly bodies: Bodies;
  readonly limits: Limits;
  /** What the server's metadata call it. */
  readonly serverName: string;
  /** Baton's own. */
  readonly version: string;
  /** Told of each failure that is a bug and no refusal; the client reads nothing of it. */
  readonly onBug: (error: unknown, c: Context<GatewayEnv>) => void;
}

/** Undefined where it has answered by itself. */
type Handler = (c: Context<GatewayEnv>) => Reply | undefined | Promise<Reply | undefined>;

export function addV2Routes(app: Hono<GatewayEnv>, options: V2Options): void {
  const { directory, limits } = options;

  const route = (method: "GET" | "POST", path: string, handler: Handler): void => {
    app.on(method, path, async (c) => {
      let reply: Reply | undefined;
      try {
        reply = await handler(c);
      } catch (error) {
        const refusal = refusalReply(error);
        if (refusal === undefined) options.onBug(error, c);
        reply = refusal ?? errorReply("internal", "internal error");
      }
      return reply === undefined ? RESPONSE_ALREADY_SENT : send(c.env.outgoing, reply);
    });
    if (method === "GET" && alsoPost.has(path)) return;
    app.all(path, (c) => send(c.env.outgoing, errorReply("method_not_allowed", "Method Not Allowed")));
  };
  const modelRoute = (method: "GET" | "POST", rest: string, handler: Handler): void => {
    route(method, `/v2/models/:model${rest}`, handler);
    route(method, `/v2/models/:model/versions/:version{[0-9]+}${rest}`, handler);
  };

  route("GET", "/v2", () => serverMetadata(options.serverName, options.version));
  route("GET", "/v2/health/live", liveness);
  route("GET", "/v2/health/ready", () => readiness(directory(), options.isReady()));
  route("GET", "/v2/fleet", async () => jsonReply(await options.fleet()));

  route("GET", "/v2/models/stats", unsupported("statistics"));
  modelRoute("GET", "/stats", unsupported("statistics"));
  modelRoute("GET", "", (c) => modelMetadata(directory(), modelName(c), version(c)));
  modelRoute("GET", "/ready", (c) => modelReadiness(directory(), modelName(c), version(c)));
  modelRoute("GET", "/config", (c) => modelConfig(directory(), modelName(c), version(c)));
  const exchange = (c: Context<GatewayEnv>): ModelExchange => ({
    ...c.env,
    model: directory().find(modelName(c), version(c)),
    infer: options.infer,
    inferLater: options.inferLater,
    generate: options.generate,
    bodies: options.bodies,
    limits,
  });
  modelRoute("POST", "/infer", (c) => inferOverHttp(exchange(c)));
  modelRoute("POST", "/generate", (c) => generateOverHttp(exchange(c)));
  modelRoute("POST", "/generate_stream", (c) => generateStreamOverHttp(exchange(c)));

  const index: Handler = (c) => repositoryIndex(c.env.incoming, options.bodies, directory(), limits);
  route("POST", "/v2/repository/index", index);
  route("POST", "/v2/repository/:repository/index", index);
  for (const action of ["load", "unload"]) {
    route("POST", `/v2/repository/models/:model/${action}`, loadRefused);
    route("POST", `/v2/repository/:repository/models/:model/${action}`, () => {
      throw new InferenceError("unsupported", "'repository_name' specification is not supported");
    });
  }

  for (const path of ["/v2/logging", "/v2/trace/setting", "/v2/models/:model/trace/setting"]) {
    route("GET", path, unsupported(path.includes("trace") ? "trace" : "logging"));
    route("POST", path, unsupported(path.includes("trace") ? "trace" : "logging"));
  }

  for (const memory of ["/v2/systemsharedmemory", "/v2/cudasharedmemory"]) {
    const disabled: Handler = () => {
      throw sharedMemoryDisabled();
    };
    route("GET", `${memory}/status`, () => jsonReply([]));
    route("GET", `${memory}/region/:region/status`, () => jsonReply([]));
    route("POST", `${memory}/region/:region/register`, disabled);
    route("POST", `${memory}/region/:region/unregister`, disabled);
    route("POST", `${memory}/unregister`, disabled);
  }
}

/** Paths with both methods: the 405 comes after the second. */
const alsoPost: ReadonlySet<string> = new Set(["/v2/logging", "/v2/trace/setting", "/v2/models/:model/trace/setting"]);

function unsupported(what: string): Handler {
  return () => {
    throw new InferenceError("unsupported", `${what} is not supported`);
  };
}

/** Decoded once by Hono; what is left of an escape, a slash or a control character names no model. */
function modelName(c: Context<GatewayEnv>): string {
  const name = c.req.param("model") ?? "";
  if (/^[A-Za-z0-9._-]{1,128}$/.test(name) && !name.includes("..")) return name;
  throw new InferenceError("unknown_model", `Request for unknown model: '${name}' is not found`);
}

function version(c: Context<GatewayEnv>): string | undefined {
  return c.req.param("version");
}
