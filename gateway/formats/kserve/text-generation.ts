/**
 * Reads a KServe request to a generator: a text, and parameters by the names of Triton's vLLM
 * backend. An ensemble with a generator takes the same parameters beside its tensors. Clients of
 * that backend write numbers and booleans as strings, too, and may put all parameters into one JSON
 * string, `sampling_parameters`. A parameter beside that string overrides the same parameter
 * inside.
 */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { SamplingSpec } from "#shared/contract/generation.js";
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import type { RequestBudget } from "../../admission/budget.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { textOfInput } from "#shared/contract/texts.js";
import { checkTurn, conversationParameterNames, readConversation } from "../../generation/conversation.js";
import { usualDeadline } from "../../generation/limits.js";
import {
  ParameterError,
  readBoolean,
  readInteger,
  readString,
  readValue,
  refuseUnsupported,
  type ParameterRules,
} from "../../generation/parameters.js";
import {
  readSampling,
  samplingParameterNames,
  unsupportedSamplingParameters,
  type GeneratorInfo,
} from "../../generation/sampling.js";
import { textPrompt } from "../../generation/prompt.js";
import type { GenerationRequest } from "../../admission/inference.js";
import { readDeadline, type DeadlineLimits } from "../../admission/request-terms.js";
import { parseRequestJson } from "#shared/json/members.js";

export interface TextGeneration {
  readonly request: GenerationRequest;
  /** Beginning of each answer: the prompt if the client wants the prompt repeated, else empty. */
  readonly prefix: string;
  /** Whether the client wants a stream; undefined if the client did not say. */
  readonly stream: boolean | undefined;
}

/** Terms that the transport knows beside the text and its parameters. */
export interface TextTerms {
  readonly tenant: string;
  readonly budget?: RequestBudget | undefined;
  readonly model: ServedModel;
  readonly idempotencyKey: string | undefined;
  /** Whether the client does not wait for the answer. */
  readonly background: boolean;
  readonly limits: DeadlineLimits;
  /** How long the first token may take if the client does not say, in ms; absent: as usual. */
  readonly usualMs?: number | undefined;
}

/** Parameters whose strings stay strings, even if they look like numbers or booleans. */
const keptAsGiven: ReadonlySet<string> = new Set(["stop", "sequence_id", "sampling_parameters"]);

/**
 * The known parameters: for sampling, of Triton's protocol, and of Triton's vLLM and TensorRT-LLM
 * backends.
 */
const generationParameters: ParameterRules = {
  obeyed: new Set([
    ...samplingParameterNames,
    ...conversationParameterNames,
    "sampling_parameters",
    "stream",
    "exclude_input_in_output",
    "timeout",
    "total_timeout",
    "id",
    "binary_data_output",
  ]),
  harmless: new Set(),
  unsupported: new Map([
    ...unsupportedSamplingParameters,
    ["beam_width", ["1"]],
    ["image", []],
    ["logprobs", []],
    ["lora_name", []],
    ["return_cumulative_logprob", ["false"]],
    ["return_finish_reason", ["false"]],
    ["return_logprobs", ["false"]],
    ["return_num_input_tokens", ["false"]],
    ["return_num_output_tokens", ["false"]],
    ["stop_words", ["[]", '""']],
  ]),
};

/**
 * @param input the model's only input, a valid BYTES tensor with one element
 * @throws InferenceError naming the invalid or unsupported parameter
 */
export function readTextGeneration(
  { tenant, budget, model, idempotencyKey, background, limits, usualMs = usualDeadline(limits) }: TextTerms,
  input: Tensor,
  parameters: JsonObject,
): TextGeneration {
  const { generator } = model;
  if (generator === undefined) throw fixedError("internal", "usual");
  const text = textOfInput(input, model.name);
  const all = plainParameters({ ...samplingParameters(parameters), ...parameters });
  refuseUnsupported(all, generationParameters);
  const sampling = readSampling(all, generator, { logprobs: null, maxTokens: null, idempotencyKey });
  const stream = readBoolean(all, "stream");
  const sequence = readConversation(all);
  checkTurn(sequence, sampling.choices);
  const { deadlineMs, restMs } = readTimes(all, limits, usualMs);
  const request = {
    model,
    tenant,
    budget,
    sequence,
    spec: { prompt: textPrompt(text, input.name), sampling, ...(restMs !== undefined && { restMs }) },
    idempotencyKey,
    deadlineMs,
    background,
  };
  const repeats = readBoolean(all, "exclude_input_in_output") === false;
  return { request, prefix: repeats ? text : "", stream };
}

/**
 * The same for the generator of an ensemble, whose answers are tensors. A parameter that asks for
 * the usual form of a generator's answer is accepted, and any other form is refused.
 */
const stepParameters: ParameterRules = {
  obeyed: new Set([...samplingParameterNames, "sampling_parameters"]),
  harmless: new Set(["id"]),
  unsupported: new Map([
    ...generationParameters.unsupported,
    ["stream", ["true"]],
    ["exclude_input_in_output", ["true"]],
  ]),
};

/**
 * Reads how the generator of an ensemble samples.
 * @throws InferenceError naming the invalid or unsupported parameter
 */
export function readStepSampling(
  parameters: JsonObject,
  generator: GeneratorInfo,
  idempotencyKey: string | undefined,
): SamplingSpec {
  const all = plainParameters({ ...samplingParameters(parameters), ...parameters });
  refuseUnsupported(all, stepParameters);
  return readSampling(all, generator, { logprobs: null, maxTokens: null, idempotencyKey });
}

interface Times {
  /** Time until the first token. */
  readonly deadlineMs: number;
  /** Time from that deadline until the end of the answer; undefined means no limit. */
  readonly restMs: number | undefined;
}

/**
 * Reads two times in microseconds, of which 0 sets no limit of its own. `timeout` lasts until the
 * first token, as Triton's lasts until a request runs. `total_timeout`, which is Baton's own, lasts
 * until the answer is complete.
 */
function readTimes(parameters: JsonObject, limits: DeadlineLimits, usualMs: number): Times {
  const timeout = readValue(parameters, "timeout") ?? 0;
  const deadlineMs = timeout === 0 ? usualMs : readDeadline(timeout, limits);
  const total = readInteger(parameters, "total_timeout", 0, limits.maxDeadlineMs * 1000) ?? 0;
  if (total === 0) return { deadlineMs, restMs: undefined };
  const totalMs = Math.ceil(total / 1000);
  return { deadlineMs: Math.min(deadlineMs, totalMs), restMs: Math.max(totalMs - deadlineMs, 0) };
}

/**
 * Refuses to repeat the prompt in a stream, because each event holds only the text after the event
 * before.
 * @throws InferenceError
 */
export function refuseRepeating({ prefix }: TextGeneration): void {
  if (prefix === "") return;
  throw new ParameterError(
    "exclude_input_in_output",
    "When streaming, `exclude_input_in_output` = False is not allowed.",
  );
}

function samplingParameters(parameters: JsonObject): JsonObject {
  const text = readString(parameters, "sampling_parameters");
  if (text === undefined) return {};
  try {
    return parseRequestJson(Buffer.from(text));
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    throw new ParameterError("sampling_parameters", "sampling_parameters must be the text of a JSON object");
  }
}

function plainParameters(parameters: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [name, keptAsGiven.has(name) ? value : unquoted(value)]),
  );
}

function unquoted(value: JsonValue): JsonValue {
  if (typeof value !== "string" || value.length > 32) return value;
  if (/^(?:true|false)$/i.test(value)) return value.toLowerCase() === "true";
  if (!/^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(value)) return value;
  const number = Number(value);
  return Number.isInteger(number) && !Number.isSafeInteger(number) && /^-?\d+$/.test(value) ? BigInt(value) : number;
}
