/**
 * A KServe request to a generator: text in, and parameters by the names of Triton's vLLM backend. Its clients write numbers and booleans as strings too, and may
 * put all of them into one JSON string, `sampling_parameters`; what stands beside that string goes before what is in it.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import { InferenceError } from "#shared/errors.js";
import { checkTurn, readConversation } from "../generation/conversation.js";
import { usualDeadline } from "../generation/cost.js";
import { ParameterFault } from "../generation/fault.js";
import { conversationMembers, refuseUnobeyed, unsupportedSampling, type KnownMembers } from "../generation/known.js";
import { textPrompt } from "../generation/prompt.js";
import { given, readBoolean, readInteger, readString } from "../generation/read-member.js";
import { readSampling, samplingMembers } from "../generation/sampling.js";
import type { GenerationRequest } from "../inference.js";
import { prefersAsync } from "../requests/prefer.js";
import { onlyTenant } from "../tenant.js";
import { readIdempotencyKey } from "./idempotency-key.js";
import type { Limits } from "./limits.js";
import { deadline } from "./parse-parameters.js";
import { parseRequestJson } from "./parse-infer.js";

export interface TextGeneration {
  readonly request: GenerationRequest;
  /** What each answer begins with: the prompt, where the client wants it repeated. */
  readonly prefix: string;
  /** Undefined where the client did not say. */
  readonly stream: boolean | undefined;
}

/** Text, even where it reads like something else. */
const keptAsGiven: ReadonlySet<string> = new Set(["stop", "sequence_id", "sampling_parameters"]);

/**
 * Beside the sampling parameters: those of Triton's protocol, of its vLLM backend, and of its
 * TensorRT-LLM one.
 */
const generationParameters: KnownMembers = {
  obeyed: new Set([
    ...samplingMembers,
    ...conversationMembers,
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
    ...unsupportedSampling,
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

/** @throws InferenceError */
export function readTextGeneration(
  model: ServedModel,
  text: string,
  parameters: JsonObject,
  headers: IncomingHttpHeaders,
  limits: Limits,
): TextGeneration {
  const { generator } = model;
  if (generator === undefined) throw new InferenceError("internal", "internal error");
  const idempotencyKey = readIdempotencyKey(headers);
  const all = plainParameters({ ...samplingParameters(parameters), ...parameters });
  refuseUnobeyed(all, generationParameters);
  const sampling = readSampling(all, generator, { logprobs: null, maxTokens: null, idempotencyKey });
  const stream = readBoolean(all, "stream");
  const sequence = readConversation(all);
  checkTurn(sequence, sampling.choices);
  const { deadlineMs, restMs } = readTimes(all, limits);
  const request = {
    model,
    tenant: onlyTenant,
    sequence,
    spec: { prompt: textPrompt(text, "text_input"), sampling, ...(restMs !== undefined && { restMs }) },
    idempotencyKey,
    deadlineMs,
    background: prefersAsync(headers),
  };
  const repeats = readBoolean(all, "exclude_input_in_output") === false;
  return { request, prefix: repeats ? text : "", stream };
}

interface Times {
  /** Until the first token. */
  readonly deadlineMs: number;
  /** From then on, until the end; undefined: as long as it takes. */
  readonly restMs: number | undefined;
}

/**
 * Microseconds, and 0 is as good as nothing: `timeout` until the first token, as Triton's is until
 * a request is run; and `total_timeout`, which is Baton's own, until the whole answer is there.
 */
function readTimes(parameters: JsonObject, limits: Limits): Times {
  const timeout = given(parameters, "timeout") ?? 0;
  const deadlineMs = timeout === 0 ? usualDeadline(limits) : deadline(timeout, limits);
  const total = readInteger(parameters, "total_timeout", 0, limits.maxDeadlineMs * 1000) ?? 0;
  if (total === 0) return { deadlineMs, restMs: undefined };
  const totalMs = Math.ceil(total / 1000);
  return { deadlineMs: Math.min(deadlineMs, totalMs), restMs: Math.max(totalMs - deadlineMs, 0) };
}

/** In a stream the prompt has no place: each event is what came after the one before. */
export function refuseRepeating({ prefix }: TextGeneration): void {
  if (prefix === "") return;
  throw new ParameterFault(
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
    throw new ParameterFault("sampling_parameters", "sampling_parameters must be the text of a JSON object");
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
