/**
 * Reads the parameters that the bodies of `/v1/completions` and `/v1/chat/completions` have in
 * common.
 */
import type { PromptSpec, SamplingSpec } from "#shared/contract/generation.js";
import type { JsonObject } from "#shared/json/parse.js";
import type { GenerationRequest } from "../../admission/inference.js";
import { checkTurn, conversationParameterNames, readConversation } from "../../generation/conversation.js";
import {
  ParameterError,
  readBoolean,
  readValue,
  refuseUnsupported,
  type ParameterRules,
} from "../../generation/parameters.js";
import { samplingParameterNames, unsupportedSamplingParameters } from "../../generation/sampling.js";
import { isObject } from "#shared/json/members.js";

/**
 * The parameters that both paths obey: OpenAI's own and vLLM's, because vLLM's clients use these
 * paths too.
 */
export const commonParameterNames = [
  ...samplingParameterNames,
  ...conversationParameterNames,
  "model",
  "stream",
  "stream_options",
  "response_format",
  "logprobs",
];

/**
 * Parameters without an effect on an answer: they concern OpenAI's own accounts, caches and
 * statistics. `parallel_tool_calls` is in the list because no answer calls a tool.
 */
export const harmlessParameters: ReadonlySet<string> = new Set([
  "metadata",
  "parallel_tool_calls",
  "prompt_cache_key",
  "prompt_cache_retention",
  "safety_identifier",
  "service_tier",
  "store",
  "user",
]);

/** Parameters to refuse, each with the values (as JSON) that ask for nothing. */
export const unsupportedParameters: readonly (readonly [name: string, neutral: readonly string[]])[] = [
  ...unsupportedSamplingParameters,
  ["audio", []],
  ["chat_template", []],
  ["chat_template_kwargs", ["{}"]],
  ["continue_final_message", ["false"]],
  ["documents", ["[]"]],
  ["function_call", ['"none"', '"auto"']],
  ["functions", ["[]"]],
  ["mm_processor_kwargs", ["{}"]],
  ["modalities", ['["text"]']],
  ["prediction", []],
  ["prompt_embeds", []],
  ["reasoning_effort", ['"none"']],
  ["return_tokens_as_token_ids", ["false"]],
  ["verbosity", ['"medium"']],
  ["web_search_options", []],
];

const streamOptions: ParameterRules = {
  obeyed: new Set(["include_usage"]),
  harmless: new Set(),
  unsupported: new Map([
    ["continuous_usage_stats", ["false"]],
    ["include_obfuscation", ["false"]],
  ]),
};

const textFormat: ParameterRules = { obeyed: new Set(["type"]), harmless: new Set(), unsupported: new Map() };

/** How the client wants to receive the answer. */
export interface Delivery {
  readonly stream: boolean;
  /** Whether a last chunk reports the token counts; only true for a stream. */
  readonly includeUsage: boolean;
}

/** @throws ParameterError */
export function readDelivery(body: JsonObject): Delivery {
  const stream = readBoolean(body, "stream") ?? false;
  const options = readValue(body, "stream_options");
  if (options === undefined) return { stream, includeUsage: false };
  if (!isObject(options)) throw new ParameterError("stream_options", "stream_options must be an object");
  if (!stream) {
    throw new ParameterError("stream_options", "stream_options is only allowed when stream is true");
  }
  refuseUnsupported(options, streamOptions, "stream_options.");
  return { stream, includeUsage: readBoolean(options, "include_usage") ?? false };
}

/**
 * Refuses every `response_format` but plain text, because Baton cannot constrain a model's text.
 * @throws ParameterError
 */
export function refuseFormats(body: JsonObject): void {
  const format = readValue(body, "response_format");
  if (format === undefined) return;
  if (isObject(format) && format["type"] === "text") return refuseUnsupported(format, textFormat, "response_format.");
  throw new ParameterError(
    "response_format",
    'response_format must be {"type":"text"}: other formats are not supported',
  );
}

/** The part of a generation request that the body decides. */
export type ParsedGeneration = Pick<GenerationRequest, "spec" | "sequence" | "idempotencyKey">;

/** @throws ParameterError if the parameters do not fit a turn of a conversation */
export function toGeneration(
  body: JsonObject,
  prompt: PromptSpec,
  sampling: SamplingSpec,
  idempotencyKey: string | undefined,
): ParsedGeneration {
  const sequence = readConversation(body);
  checkTurn(sequence, sampling.choices);
  return { spec: { prompt, sampling }, sequence, idempotencyKey };
}
