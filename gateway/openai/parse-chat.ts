/** The body of `POST /v1/chat/completions`. */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import { ParameterFault, shown } from "../generation/fault.js";
import { checkPromptBytes } from "../generation/prompt.js";
import { given, readBoolean, readInteger } from "../generation/read-member.js";
import { readSampling, type Generator } from "../generation/sampling.js";
import { isObject } from "../v2/members.js";
import { readMessages } from "./parse-messages.js";
import { generationOf, readDelivery, refuseFormats, type Delivery, type ParsedGeneration } from "./parse-common.js";
import { plainJson } from "./plain-json.js";

export interface ParsedChat {
  readonly generation: ParsedGeneration;
  readonly choices: number;
  readonly delivery: Delivery;
}

const maxTools = 128;
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
  refuseFormats(body);
  const messages = readMessages(body);
  const tools = readTools(body);
  checkPromptBytes(jsonBytes(messages) + (tools === undefined ? 0 : jsonBytes(tools)), "messages");
  const sampling = readSampling(body, generator, { logprobs: readLogprobs(body), maxTokens: null, idempotencyKey });
  const addGenerationPrompt = readBoolean(body, "add_generation_prompt") ?? true;
  const prompt = { kind: "chat" as const, messages, ...(tools && { tools }), addGenerationPrompt };
  const generation = generationOf(body, prompt, sampling, idempotencyKey);
  return { generation, choices: sampling.choices, delivery: readDelivery(body) };
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function readLogprobs(body: JsonObject): number | null {
  const wanted = readBoolean(body, "logprobs") ?? false;
  const top = readInteger(body, "top_logprobs", 0, maxLogprobs);
  if (wanted) return top ?? 0;
  if (top === undefined) return null;
  throw new ParameterFault("top_logprobs", "top_logprobs is only allowed when logprobs is true");
}

/** For the template to tell the model of; what the model makes of them comes back as text. */
function readTools(body: JsonObject): JsonValue[] | undefined {
  const choice = given(body, "tool_choice");
  if (choice !== undefined && choice !== "auto" && choice !== "none") {
    throw new ParameterFault("tool_choice", "tool_choice must be auto or none: no tool can be forced");
  }
  const tools = given(body, "tools");
  if (tools === undefined) return undefined;
  if (!Array.isArray(tools) || !tools.every(isObject)) {
    throw new ParameterFault("tools", `tools must be a list of objects, got ${shown(tools)}`);
  }
  if (tools.length > maxTools) {
    throw new ParameterFault("tools", `tools has ${tools.length} tools, more than the limit of ${maxTools}`);
  }
  return choice === "none" || tools.length === 0 ? undefined : tools.map(plainJson);
}
