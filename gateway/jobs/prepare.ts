/**
 * Makes the request of a job from its body, with the readers of the path that answers at once, and
 * notes how to render its result.
 */
import type { ServedModel } from "#shared/contract/announcement.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { parseRequestJson } from "#shared/json/members.js";
import type { RequestBudget } from "../admission/budget.js";
import type { AnyRequest, GenerationRequest, InferenceRequest, QueueTerms } from "../admission/inference.js";
import type { JobRequest } from "../admission/submit-job.js";
import type { ModelDirectory } from "../fleet/models.js";
import type { Limits } from "../formats/limits.js";
import { readBoolean } from "../generation/parameters.js";
import { refuseClassesLater } from "../formats/kserve/classification.js";
import type { RequestReader } from "../formats/kserve/request-reader.js";
import type { ReadRequest } from "../formats/kserve/read-request.js";
import { tensorRequest } from "../formats/kserve/tensor-request.js";
import { jobLevel } from "../formats/kserve/queue-policy.js";
import type { RequestedOutput } from "../formats/kserve/request.js";
import { readTextGeneration } from "../formats/kserve/text-generation.js";
import { parseChatRequest } from "../formats/openai/chat.js";
import { parseCompletionRequest } from "../formats/openai/completions.js";
import type { Envelope } from "./envelope.js";
import { LONGEST_WAIT_MS, USUAL_PRIORITY, type JobOptions } from "./options.js";

/** How to render the result of a job: the parts of the answer that the outcome does not contain. */
export type Shown =
  | { readonly as: "tensors"; readonly id: string; readonly outputs: readonly RequestedOutput[] }
  | ({ readonly as: "text"; readonly id: string; readonly outputs: readonly RequestedOutput[] } & TextShown)
  | ({ readonly as: "chat" } & Choices)
  | ({ readonly as: "completion"; readonly echoes: readonly string[] } & Choices);

interface Choices {
  readonly choices: number;
  /** Most tokens of each choice; null if the context is the limit. */
  readonly maxTokens: number | null;
}

interface TextShown extends Choices {
  /** The name of the output, and the shape of the input. */
  readonly output: string;
  readonly shape: readonly number[];
  /** The start of each text. */
  readonly prefix: string;
}

export interface Prepared {
  readonly run: JobRequest;
  readonly shown: Shown;
  /** The job's time limit by its body alone, in ms. */
  readonly timeoutMs: number;
}

/** The model, the tenant and the terms for which a gateway reads a job. */
export interface Preparing {
  readonly tenant: string;
  /** Absent if no client waits, or if the client has no limits. */
  readonly budget?: RequestBudget | undefined;
  readonly model: ServedModel;
  /** The version that the client named; undefined if it named none. */
  readonly version: string | undefined;
  /** Other versions that may run a step, because its sequence may have begun on them. */
  readonly others: readonly ServedModel[];
  readonly directory: ModelDirectory;
  readonly reader: RequestReader;
  readonly limits: Limits;
  /** Undefined for a job that runs once more. */
  readonly idempotencyKey: string | undefined;
  /** Throws if no client waits for the answer any more; absent if no client has to wait. */
  readonly stillWanted?: () => void;
}

/**
 * @param waitMs how long the job may wait until a worker begins it
 * @throws InferenceError as the path that answers at once does
 */
export async function prepare(
  context: Preparing,
  { type, body }: Envelope,
  options: JobOptions,
  waitMs: number,
): Promise<Prepared> {
  if (type === "chat" || type === "completion") return prepareOpenAi(context, { type, body }, options, waitMs);
  const { model, others, reader, stillWanted = () => undefined } = context;
  const limits = { ...context.limits, defaultDeadlineMs: LONGEST_WAIT_MS };
  const reading = { path: type, headerLength: undefined, model, others, limits };
  const read = await reader.read(body, body.length, reading, stillWanted);
  if (model.decoupled === true) throw fixedError("unsupported", "decoupledJob");
  if (model.generator !== undefined) return prepareText({ ...context, limits }, type, read, options, waitMs);
  refuseClassesLater(read.valid.outputs);
  const leveled = withLevel(read, model, options);
  const request = tensorRequest({ ...context, limits }, leveled);
  const shown = { as: "tensors", id: read.id, outputs: type === "infer" ? read.valid.outputs : [] } as const;
  const run = { kind: "tensors", request: onTerms(request, options, waitMs) } as const;
  return { run, shown, timeoutMs: request.deadlineMs };
}

/** @throws InferenceError if both the job and its body set the priority */
function withLevel(read: ReadRequest, model: ServedModel, { priority }: JobOptions): ReadRequest {
  const { level } = read.parameters;
  if (level !== undefined && priority !== null) {
    throw new InferenceError("invalid_argument", "priority is given twice: by the job, and by the body's parameters");
  }
  if (level !== undefined) return read;
  return { ...read, parameters: { ...read.parameters, level: jobLevel(priority ?? USUAL_PRIORITY, model) } };
}

/** The request with the job's own time limit and priority, for every version of the model. */
function onTerms(request: InferenceRequest, options: JobOptions, waitMs: number): InferenceRequest {
  return {
    ...request,
    deadlineMs: Math.min(request.deadlineMs, waitMs),
    queue: request.queue ?? termsOf(request, options),
    under: (model) => onTerms(request.under(model), options, waitMs),
  };
}

/** The queue terms of a model without policies. */
function termsOf({ model }: Pick<AnyRequest, "model">, { priority }: JobOptions): QueueTerms {
  const level = jobLevel(priority ?? USUAL_PRIORITY, model);
  return { level, rejectMs: undefined, delayMs: undefined, mostQueued: undefined };
}

function prepareText(
  { tenant, budget, model, limits, idempotencyKey }: Preparing,
  type: "infer" | "generate",
  { id, textParameters, valid }: ReadRequest,
  options: JobOptions,
  waitMs: number,
): Prepared {
  const [input] = valid.inputs;
  const [output] = valid.outputs;
  if (input === undefined || output === undefined) throw new TypeError(`generator '${model.name}' has no tensors`);
  const terms = { tenant, budget, model, idempotencyKey, background: true, limits, usualMs: LONGEST_WAIT_MS };
  const { request, prefix, stream } = readTextGeneration(terms, input, textParameters);
  if (stream === true) throw noStream();
  const { choices, maxTokens } = request.spec.sampling;
  const shape = type === "infer" ? input.shape : [1];
  const outputs = type === "infer" ? valid.outputs : [];
  const shown = { as: "text", id, outputs, output: output.name, shape, prefix, choices, maxTokens } as const;
  return { ...textRun(request, options, waitMs), shown };
}

function prepareOpenAi(
  { tenant, budget, model, directory, idempotencyKey }: Preparing,
  { type, body }: Pick<Envelope, "type" | "body">,
  options: JobOptions,
  waitMs: number,
): Prepared {
  const parsed = parseRequestJson(body);
  const named = parsed["model"] ?? model.name;
  if (named !== model.name) {
    throw new InferenceError("invalid_argument", `${type}.model must be '${model.name}', as in the path, or absent`);
  }
  parsed["model"] = model.name;
  const terms = { tenant, budget, deadlineMs: LONGEST_WAIT_MS, background: true };
  const parse = type === "chat" ? parseChatRequest : parseCompletionRequest;
  const { generations, choices, delivery } = parse(parsed, directory, idempotencyKey, terms);
  if (delivery.stream) throw noStream();
  const [generation] = generations;
  if (generation === undefined) throw new TypeError("a body without a prompt was not refused");
  const { prompt, sampling } = generation.spec;
  const { maxTokens } = sampling;
  // The path may name another version than the latest, which the parsers take.
  const run = textRun({ ...generation, model }, options, waitMs);
  if (type === "chat") return { ...run, shown: { as: "chat", choices, maxTokens } };
  const echoes = prompt.kind === "text" && readBoolean(parsed, "echo") === true ? [prompt.text] : [];
  return { ...run, shown: { as: "completion", choices, maxTokens, echoes } };
}

function textRun(request: GenerationRequest, options: JobOptions, waitMs: number): Omit<Prepared, "shown"> {
  const { deadlineMs: timeoutMs } = request;
  const terms = { deadlineMs: Math.min(timeoutMs, waitMs), queue: termsOf(request, options) };
  return { run: { kind: "text", request: { ...request, ...terms } }, timeoutMs };
}

function noStream(): InferenceError {
  return new InferenceError(
    "invalid_argument",
    "stream must be false for a job: what it has generated so far is read at /v2/requests/<request_id>/events",
  );
}
