/**
 * The members of the bodies of OpenAI's paths: OpenAI's own, and vLLM's, whose clients send them
 * here too.
 */
import { conversationMembers, unsupportedSampling, type KnownMembers } from "../generation/known.js";
import { samplingMembers } from "../generation/sampling.js";

const both = [
  ...samplingMembers,
  ...conversationMembers,
  "model",
  "stream",
  "stream_options",
  "response_format",
  "logprobs",
];

/**
 * For OpenAI's own accounts, caches and statistics; and without tools, how many are called at a
 * time.
 */
const harmless: ReadonlySet<string> = new Set([
  "metadata",
  "parallel_tool_calls",
  "prompt_cache_key",
  "prompt_cache_retention",
  "safety_identifier",
  "service_tier",
  "store",
  "user",
]);

const unsupported: readonly (readonly [name: string, idle: readonly string[]])[] = [
  ...unsupportedSampling,
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

export const chatMembers: KnownMembers = {
  obeyed: new Set([...both, "messages", "top_logprobs", "add_generation_prompt", "tools", "tool_choice"]),
  harmless,
  unsupported: new Map([...unsupported, ["add_special_tokens", ["false"]], ["echo", ["false"]]]),
};

export const completionMembers: KnownMembers = {
  obeyed: new Set([...both, "prompt", "suffix", "echo"]),
  harmless,
  unsupported: new Map([
    ...unsupported,
    ["add_special_tokens", ["true"]],
    ["tool_choice", ['"none"', '"auto"']],
    ["tools", ["[]"]],
  ]),
};

export const streamOptions: KnownMembers = {
  obeyed: new Set(["include_usage"]),
  harmless: new Set(),
  unsupported: new Map([
    ["continuous_usage_stats", ["false"]],
    ["include_obfuscation", ["false"]],
  ]),
};

/** A hint to the caches of others. */
export const textPart: KnownMembers = {
  obeyed: new Set(["type", "text"]),
  harmless: new Set(["annotations", "cache_control"]),
  unsupported: new Map(),
};

export const textFormat: KnownMembers = { obeyed: new Set(["type"]), harmless: new Set(), unsupported: new Map() };
