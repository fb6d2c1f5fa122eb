/** The body of `POST /v1/chat/completions`. */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { JsonObject } from "#shared/json/parse.js";
import { ParameterFault } from "../generation/fault.js";
import { refuseUnobeyed } from "../generation/known.js";
import { checkPromptBytes } from "../generation/prompt.js";
import { given, readBoolean, readInteger } from "../generation/read-member.js";
import { readSampling, type Generator } from "../generation/sampling.js";
import { chatMembers } from "./known.js";
import { readMessages } from "./parse-messages.js";
import { generationOf, readDelivery, refuseFormats, type Delivery, type ParsedGeneration } from "./parse-common.js";

export interface ParsedChat {
  readonly generation: ParsedGeneration;
  readonly choices: number;
  readonly delivery: Delivery;
}

const maxLogprobs = 20;

/** @throws InferenceError */
export function parseChat(
  body: JsonObject,
  model: ServedModel,
  generator: Generator,
  idempotencyKey: string | undefined,
): ParsedChat {
  if (!generator.chat) {
    throw new ParameterFault(
      "model",
      `The model '${model.name}' has no chat template and thus does not support chat; its path is /v1/completions`,
    );
  }
  refuseUnobeyed(body, chatMembers);
  refuseFormats(body);
  refuseTools(body);
  const messages = readMessages(body);
  checkPromptBytes(Buffer.byteLength(JSON.stringify(messages)), "messages");
  const sampling = readSampling(body, generator, { logprobs: readLogprobs(body), maxTokens: null, idempotencyKey });
  const addGenerationPrompt = readBoolean(body, "add_generation_prompt") ?? true;
  const prompt = { kind: "chat" as const, messages, addGenerationPrompt };
  const generation = generationOf(body, prompt, sampling, idempotencyKey);
  return { generation, choices: sampling.choices, delivery: readDelivery(body) };
}

function readLogprobs(body: JsonObject): number | null {
  const wanted = readBoolean(body, "logprobs") ?? false;
  const top = readInteger(body, "top_logprobs", 0, maxLogprobs);
  if (wanted) return top ?? 0;
  if (top === undefined) return null;
  throw new ParameterFault("top_logprobs", "top_logprobs is only allowed when logprobs is true");
}

/**
 * No answer has a tool call in it, so nobody is told that it might. With the choice `none` tools
 * ask for nothing.
 */
function refuseTools(body: JsonObject): void {
  const choice = given(body, "tool_choice") ?? "auto";
  if (choice !== "auto" && choice !== "none") {
    throw new ParameterFault("tool_choice", "tool_choice must be auto or none: no tool can be called");
  }
  const tools = given(body, "tools");
  if (tools === undefined || choice === "none" || (Array.isArray(tools) && tools.length === 0)) return;
  throw new ParameterFault("tools", 'tools is not supported: leave it out or give [] or a tool_choice of "none"');
}
