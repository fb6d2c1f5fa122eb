/**
 * The paths of the v2 protocol: the KServe community's "Open Inference Protocol" with Triton's
 * extensions.
 */
import { z } from "zod";
import { fixedError } from "#shared/errors.js";
import { parseRequestJson } from "#shared/json/members.js";
import { noted } from "../../facts/request-facts.js";
import { acceptedAnswer } from "../../api/endpoint/accepted.js";
import type { Asked } from "../../api/endpoint/asked.js";
import { endpointsOf, type Endpoint } from "../../api/endpoint/endpoint.js";
import { forModel, modelOf } from "../../api/endpoint/model-path.js";
import { queueRefusals, runFailures } from "../../api/endpoint/refusals.js";
import type { ModelDirectory } from "../../fleet/models.js";
import type { Fleet } from "../../fleet/watch.js";
import {
  isServerReady,
  modelConfig,
  modelMetadata,
  repositoryIndex,
  serverMetadata,
} from "../../formats/kserve/metadata.js";
import { emptyReply, jsonReply } from "../../formats/reply.js";
import { factsOf } from "../../facts/answer-facts.js";
import type { ModelExchange } from "./exchange.js";
import { generateOverHttp, generateStreamOverHttp } from "./generate.js";
import { inferOverHttp } from "./infer.js";
import { refusedEndpoints } from "./refused.js";

/** The parts that answer the v2 protocol. */
export interface KserveParts extends Pick<ModelExchange, "inference" | "bodies" | "reader" | "printer" | "limits"> {
  readonly fleet: Fleet;
  /** Whether the gateway can admit requests. */
  readonly isReady: () => boolean;
  /** The server's name in its metadata. */
  readonly serverName: string;
  /** The server's version in its metadata. */
  readonly version: string;
}

const health = endpointsOf<KserveParts>("health");
const metadata = endpointsOf<KserveParts>("metadata");
const config = endpointsOf<KserveParts>("model-config");
const inference = endpointsOf<KserveParts>("inference");
const repository = endpointsOf<KserveParts>("model-repository");

const tensorShape = () => z.strictObject({ name: z.string(), datatype: z.string(), shape: z.array(z.number()) });

export const modelMetadataShape = () =>
  z.strictObject({
    name: z.string(),
    versions: z.array(z.string()),
    platform: z.string(),
    inputs: z.array(tensorShape()),
    outputs: z.array(tensorShape()),
  });

/** Each output is a further member of the object. */
const generatedShape = () =>
  z.union([
    z.looseObject({ model_name: z.string(), model_version: z.string(), id: z.string().optional() }),
    z.strictObject({ error: z.string(), code: z.literal("invalid_argument") }),
  ]);

export const repositoryShape = () =>
  z.array(
    z.strictObject({
      name: z.string(),
      version: z.string().optional(),
      state: z.enum(["READY", "UNAVAILABLE"]).optional(),
      reason: z.string().optional(),
    }),
  );

const notReady = { error: "Model version not ready" };

const serverEndpoints = [
  metadata({
    method: "GET",
    path: "/v2",
    open: "metadata",
    does: "Describes the server.",
    answers: {
      200: {
        says: "The server's name, version and extensions.",
        shape: () => z.strictObject({ name: z.string(), version: z.string(), extensions: z.array(z.string()) }),
      },
    },
    handle: (_, { serverName, version }) => jsonReply(serverMetadata(serverName, version)),
  }),
  // Health has no body: probes read the status alone.
  health({
    method: "GET",
    path: "/v2/health/live",
    open: "health",
    does: "Tells a probe that the process lives.",
    answers: { 200: { says: "The process lives." } },
    handle: () => emptyReply,
  }),
  health({
    method: "GET",
    path: "/v2/health/ready",
    open: "health",
    does: "Tells a probe whether requests can be answered now.",
    answers: {
      200: { says: "The gateway admits requests, and workers serve a model." },
      400: { says: "The gateway cannot admit requests, or no worker serves a model." },
    },
    handle: (_, { fleet, isReady }) =>
      isServerReady(fleet.directory, isReady()) ? emptyReply : { ...emptyReply, status: 400 },
  }),
];

const modelEndpoints = forModel(
  metadata({
    method: "GET",
    path: "/v2/models/:model",
    open: "metadata",
    does: "Describes a model.",
    answers: {
      200: {
        says: "The model's versions, inputs and outputs.",
        shape: modelMetadataShape,
      },
    },
    refusals: ["unknown_model", "model_unavailable"],
    handle: (asked, { fleet }) => jsonReply(ofModel(asked, asked.models(fleet), modelMetadata)),
  }),
  health({
    method: "GET",
    path: "/v2/models/:model/ready",
    open: "metadata",
    does: "Tells whether a live worker serves a model.",
    answers: {
      200: { says: "A live worker serves the model." },
      400: {
        says: "The model's workers have gone lately.",
        shape: () => z.strictObject({ error: z.literal(notReady.error) }),
      },
    },
    refusals: ["unknown_model", "model_unavailable"],
    handle(asked, { fleet }) {
      const directory = asked.models(fleet);
      const { model, version } = modelOf(asked);
      return directory.isServed(directory.find(model, version)) ? emptyReply : jsonReply(notReady, 400);
    },
  }),
  config({
    method: "GET",
    path: "/v2/models/:model/config",
    does: "Shows the configuration of a model.",
    answers: { 200: { says: "The completed ModelConfig.", shape: () => z.looseObject({}) } },
    refusals: ["unknown_model", "model_unavailable"],
    handle: (asked, { fleet }) => jsonReply(ofModel(asked, asked.models(fleet), modelConfig)),
  }),
);

const inferenceTerms = {
  method: "POST",
  right: "infer",
  body: "application/json",
  refusals: [...queueRefusals, ...runFailures, "result_expired", "resume_window_passed"],
} as const;

const inferenceEndpoints = forModel(
  inference({
    ...inferenceTerms,
    path: "/v2/models/:model/infer",
    does: "Runs a model on tensors. The body and the answer may hold tensors as bytes behind the JSON.",
    answers: {
      200: {
        says: "The outputs: JSON, JSON and bytes behind it, or the events of a generator's stream.",
        mediaType: "*/*",
      },
      202: acceptedAnswer,
    },
    handle: (asked, parts) => inferOverHttp(exchangeOf(asked, parts)),
  }),
  inference({
    ...inferenceTerms,
    path: "/v2/models/:model/generate",
    does: "Runs a model on a flat JSON object.",
    answers: {
      200: {
        says: "The outputs as a flat JSON object. Several responses are an error, as with Triton.",
        shape: generatedShape,
      },
      202: acceptedAnswer,
    },
    handle: (asked, parts) => generateOverHttp(exchangeOf(asked, parts)),
  }),
  inference({
    ...inferenceTerms,
    path: "/v2/models/:model/generate_stream",
    does: "Runs a model on a flat JSON object, and streams the text of a generator.",
    answers: {
      200: { says: "Events, each with a flat JSON object.", mediaType: "text/event-stream" },
      202: acceptedAnswer,
    },
    handle: (asked, parts) => generateStreamOverHttp(exchangeOf(asked, parts)),
  }),
);

const repositoryEndpoints = ["/v2/repository/index", "/v2/repository/:repository/index"].map((path) =>
  repository({
    method: "POST",
    path,
    does: "Lists all models, also models that no worker could load, or has loaded.",
    body: "application/json",
    mayBeEmpty: true,
    answers: { 200: { says: "The versions of all models with their states.", shape: repositoryShape } },
    async handle(asked, { fleet }) {
      // Reads the body as the client sent it, whatever the header Content-Encoding says.
      const readyOnly = await asked.body({ encoding: undefined }, asksReadyOnly);
      return jsonReply(repositoryIndex(asked.models(fleet), readyOnly));
    },
  }),
);

export const kserveEndpoints: readonly Endpoint<KserveParts>[] = [
  ...serverEndpoints,
  ...refusedEndpoints,
  ...modelEndpoints,
  ...inferenceEndpoints,
  ...repositoryEndpoints,
];

/** @throws InferenceError if the model is unknown */
function ofModel(
  asked: Asked,
  directory: ModelDirectory,
  describe: (directory: ModelDirectory, name: string, version: string | undefined) => object,
): object {
  const { model, version } = modelOf(asked);
  return describe(directory, model, version);
}

/** @throws InferenceError if the model is unknown */
function exchangeOf(asked: Asked, parts: KserveParts): ModelExchange {
  const { fleet, bodies, reader, printer, limits } = parts;
  const { model: name, version } = modelOf(asked);
  const inference = asked.traced(noted(parts.inference, factsOf(asked.incoming)), "kserve");
  const directory = asked.models(fleet);
  const model = directory.find(name, version);
  return {
    incoming: asked.incoming,
    outgoing: asked.outgoing,
    tenant: asked.caller.tenant,
    budget: asked.budget(),
    model,
    version,
    others: directory.others(model),
    inference,
    bodies,
    reader,
    printer,
    limits,
    judgeAgain: () => asked.judgeAgain(),
  };
}

/**
 * Reads the member `ready` of a request for the repository's index. Other members have no meaning.
 * @throws InferenceError
 */
function asksReadyOnly(body: Buffer): boolean {
  if (body.length === 0) return false;
  const { ready = false } = parseRequestJson(body);
  if (typeof ready === "boolean") return ready;
  throw fixedError("invalid_argument", "repositoryReady");
}
