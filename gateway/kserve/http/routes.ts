/**
 * The paths of the v2 protocol: the KServe community's "Open Inference Protocol" with Triton's
 * extensions, and Baton's own `/v2/fleet`.
 */
import type { Context } from "hono";
import type { Inference } from "../../admission/inference.js";
import type { ModelDirectory } from "../../fleet/models.js";
import type { Fleet } from "../../fleet/watch.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { parseRequestJson } from "#shared/json/members.js";
import type { JsonObject } from "#shared/json/parse.js";
import type { Bodies } from "../../http/bodies.js";
import type { ModelExchange } from "./exchange.js";
import { generateOverHttp, generateStreamOverHttp } from "./generate.js";
import { inferOverHttp } from "./infer.js";
import type { Limits } from "../../http/limits.js";
import { isServerReady, modelConfig, modelMetadata, repositoryIndex, serverMetadata } from "../metadata.js";
import type { GatewayEnv, Handler, Router } from "../../http/router.js";
import type { TenantOf } from "../../http/tenant.js";
import { errorReply } from "../../http/errors.js";
import { emptyReply, jsonReply, type Reply } from "../../http/reply.js";
import { modelName, modelPaths, modelVersion } from "./path.js";
import type { RequestReader } from "./request-reader.js";
import type { TensorPrinter } from "./tensor-printer.js";

export interface KserveRoutesOptions {
  readonly fleet: Fleet;
  readonly inference: Inference;
  /** Whether the gateway can admit requests. */
  readonly isReady: () => boolean;
  readonly bodies: Bodies;
  readonly reader: RequestReader;
  readonly printer: TensorPrinter;
  readonly limits: Limits;
  readonly tenantOf: TenantOf;
  /** The server's name in its metadata. */
  readonly serverName: string;
  /** The server's version in its metadata. */
  readonly version: string;
}

export function addKserveRoutes(router: Router, options: KserveRoutesOptions): void {
  const { fleet, inference, reader, printer, limits, tenantOf } = options;
  const route = (method: "GET" | "POST", path: string, handler: Handler): void => {
    router.add(path, { [method]: handler });
  };
  const modelRoute = (method: "GET" | "POST", rest: string, handler: Handler): void => {
    for (const path of modelPaths) route(method, `${path}${rest}`, handler);
  };

  route("GET", "/v2", () => jsonReply(serverMetadata(options.serverName, options.version)));
  // Health has no body: probes read the status alone.
  route("GET", "/v2/health/live", () => emptyReply);
  route("GET", "/v2/health/ready", () => {
    return isServerReady(fleet.directory, options.isReady()) ? emptyReply : { ...emptyReply, status: 400 };
  });
  // A caller without the tenant header, for example an operator, sees no tenant's figures.
  const asker = ({ env }: Context<GatewayEnv>) => {
    try {
      return tenantOf(env.incoming);
    } catch (error) {
      if (error instanceof InferenceError) return undefined;
      throw error;
    }
  };
  route("GET", "/v2/fleet", async (c) => jsonReply(await fleet.describe(asker(c))));

  route("GET", "/v2/models/stats", unsupported("statistics"));
  modelRoute("GET", "/stats", unsupported("statistics"));
  modelRoute("GET", "", (c) => jsonReply(modelMetadata(fleet.directory, modelName(c), modelVersion(c))));
  modelRoute("GET", "/ready", (c) => modelReadiness(fleet.directory, modelName(c), modelVersion(c)));
  modelRoute("GET", "/config", (c) => jsonReply(modelConfig(fleet.directory, modelName(c), modelVersion(c))));
  const exchange = (c: Context<GatewayEnv>): ModelExchange => {
    const named = modelVersion(c);
    const model = fleet.directory.find(modelName(c), named);
    const others = fleet.directory.others(model);
    return {
      ...c.env,
      tenant: tenantOf(c.env.incoming),
      model,
      version: named,
      others,
      inference,
      bodies: options.bodies,
      reader,
      printer,
      limits,
    };
  };
  modelRoute("POST", "/infer", (c) => inferOverHttp(exchange(c)));
  modelRoute("POST", "/generate", (c) => generateOverHttp(exchange(c)));
  modelRoute("POST", "/generate_stream", (c) => generateStreamOverHttp(exchange(c)));

  const index: Handler = async (c) => {
    const read = (body: Buffer): boolean => body.length > 0 && asksReadyOnly(parseRequestJson(body));
    const readyOnly = await options.bodies.use(c.env.incoming, { maxBytes: limits.controlBytes }, read);
    return jsonReply(repositoryIndex(fleet.directory, readyOnly));
  };
  route("POST", "/v2/repository/index", index);
  route("POST", "/v2/repository/:repository/index", index);
  for (const action of ["load", "unload"]) {
    route("POST", `/v2/repository/models/:model/${action}`, loadRefused);
    route("POST", `/v2/repository/:repository/models/:model/${action}`, () => {
      throw fixedError("unsupported", "repositoryName");
    });
  }

  for (const path of ["/v2/logging", "/v2/trace/setting", "/v2/models/:model/trace/setting"]) {
    const handler = unsupported(path.includes("trace") ? "trace" : "logging");
    router.add(path, { GET: handler, POST: handler });
  }

  for (const memory of ["/v2/systemsharedmemory", "/v2/cudasharedmemory"]) {
    const disabled: Handler = () => {
      throw fixedError("unsupported", "sharedMemory");
    };
    route("GET", `${memory}/status`, () => jsonReply([]));
    route("GET", `${memory}/region/:region/status`, () => jsonReply([]));
    route("POST", `${memory}/region/:region/register`, disabled);
    route("POST", `${memory}/region/:region/unregister`, disabled);
    route("POST", `${memory}/unregister`, disabled);
  }
}

/** @throws InferenceError if the model is unknown */
function modelReadiness(directory: ModelDirectory, name: string, version: string | undefined): Reply {
  const model = directory.find(name, version);
  if (directory.isServed(model)) return emptyReply;
  return { ...jsonReply({ error: "Model version not ready" }), status: 400 };
}

/** Reads the member `ready` from the body of a request for the repository's index. */
function asksReadyOnly({ ready = false }: JsonObject): boolean {
  if (typeof ready === "boolean") return ready;
  throw fixedError("invalid_argument", "repositoryReady");
}

/**
 * Refuses loading and unloading, because workers load the contents of their own directory. Triton's
 * status for that is 503, but waiting changes nothing, so the code asks for no retry.
 */
function loadRefused(): Reply {
  return errorReply(fixedError("unsupported", "modelControl"), "kserve", 503);
}

function unsupported(what: string): Handler {
  return () => {
    throw new InferenceError("unsupported", `${what} is not supported`);
  };
}
