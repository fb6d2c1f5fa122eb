/**
 * `POST /v1/chat/completions`: parses the body and renders the answer. A chat is one generation;
 * the worker turns the messages into a prompt with the model's own chat template.
 */
import type { ChoiceDelta, PromptSpec, TokenChance, TokenRecord } from "#shared/contract/generation.js";
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import type { ModelDirectory } from "../../fleet/models.js";
import {
  ParameterError,
  preview,
  readBoolean,
  readInteger,
  readValue,
  refuseUnsupported,
  type ParameterRules,
} from "../../generation/parameters.js";
import { checkPromptBytes } from "../../generation/prompt.js";
import { readSampling } from "../../generation/sampling.js";
import { isObject } from "#shared/json/members.js";
import {
  commonParameterNames,
  harmlessParameters,
  readDelivery,
  refuseFormats,
  toGeneration,
  unsupportedParameters,
} from "./body.js";
import { requestedModel } from "./models.js";
import type { ChoiceRenderer, OpenAiRequest, RequestTerms } from "./request.js";

const chatParameters: ParameterRules = {
  obeyed: new Set([
    ...commonParameterNames,
    "messages",
    "top_logprobs",
    "add_generation_prompt",
    "tools",
    "tool_choice",
  ]),
  harmless: harmlessParameters,
  unsupported: new Map([...unsupportedParameters, ["add_special_tokens", ["false"]], ["echo", ["false"]]]),
};

/** OpenAI's limit for `top_logprobs`. */
const maxLogprobs = 20;

/**
 * @param terms the terms outside of the body
 * @throws InferenceError `unknown_model`, or a ParameterError that names the refused parameter
 */
export function parseChatRequest(
  body: JsonObject,
  directory: ModelDirectory,
  idempotencyKey: string | undefined,
  terms: RequestTerms,
): OpenAiRequest {
  const { model, generator } = requestedModel(directory, body);
  if (!generator.chat) {
    throw new ParameterError(
      "model",
      `The model '${model.name}' has no chat template and thus does not support chat; its path is /v1/completions`,
    );
  }
  refuseUnsupported(body, chatParameters);
  refuseFormats(body);
  refuseTools(body);
  const messages = readMessages(body);
  checkPromptBytes(Buffer.byteLength(JSON.stringify(messages)), "messages");
  const sampling = readSampling(body, generator, { logprobs: readLogprobs(body), maxTokens: null, idempotencyKey });
  const addGenerationPrompt = readBoolean(body, "add_generation_prompt") ?? true;
  const prompt = { kind: "chat" as const, messages, addGenerationPrompt };
  const generation = toGeneration(body, prompt, sampling, idempotencyKey);
  const { choices } = sampling;
  return {
    model,
    generations: [{ ...terms, ...generation, model }],
    choices,
    delivery: readDelivery(body),
    renderer: chatRenderer(choices),
  };
}

/** @returns how many alternatives to report beside each token; null for no log probabilities */
function readLogprobs(body: JsonObject): number | null {
  const wanted = readBoolean(body, "logprobs") ?? false;
  const top = readInteger(body, "top_logprobs", 0, maxLogprobs);
  if (wanted) return top ?? 0;
  if (top === undefined) return null;
  throw new ParameterError("top_logprobs", "top_logprobs is only allowed when logprobs is true");
}

/**
 * Refuses tools that the model may call: no answer ever contains a tool call, and a client that
 * offers tools would wait for one. With the choice `none`, tools ask for nothing.
 */
function refuseTools(body: JsonObject): void {
  const choice = readValue(body, "tool_choice") ?? "auto";
  if (choice !== "auto" && choice !== "none") {
    throw new ParameterError("tool_choice", "tool_choice must be auto or none: no tool can be called");
  }
  const tools = readValue(body, "tools");
  if (tools === undefined || choice === "none" || (Array.isArray(tools) && tools.length === 0)) return;
  throw new ParameterError("tools", 'tools is not supported: leave it out or give [] or a tool_choice of "none"');
}

type ChatMessages = Extract<PromptSpec, { kind: "chat" }>["messages"];

/** Each message costs memory here and time in the template, even if short. */
const maxMessages = 4096;

/** `cache_control` and `annotations` only advise caches and user interfaces of other services. */
const textPart: ParameterRules = {
  obeyed: new Set(["type", "text"]),
  harmless: new Set(["annotations", "cache_control"]),
  unsupported: new Map(),
};

/** OpenAI renamed `system` to `developer`; chat templates know only the old name. */
const roles: ReadonlyMap<string, string> = new Map([
  ["system", "system"],
  ["developer", "system"],
  ["user", "user"],
  ["assistant", "assistant"],
  ["tool", "tool"],
]);

/**
 * Reads the messages as chat templates expect them: with a role that templates know, and with text
 * as content. Other members of a message stay unchanged. The worker, which has the template,
 * refuses the members that the template does not use.
 */
function readMessages(body: JsonObject): ChatMessages {
  const messages = readValue(body, "messages");
  if (!Array.isArray(messages)) {
    throw new ParameterError("messages", `messages must be a list of messages, got ${preview(messages ?? null)}`);
  }
  if (messages.length === 0) throw new ParameterError("messages", "messages must not be empty");
  if (messages.length > maxMessages) {
    throw new ParameterError(
      "messages",
      `messages has ${messages.length} messages, more than the limit of ${maxMessages}`,
    );
  }
  return messages.map((message, index) => readMessage(message, `messages[${index}]`));
}

function readMessage(message: JsonValue, name: string): ChatMessages[number] {
  if (!isObject(message)) throw new ParameterError(name, `${name} must be an object, got ${preview(message)}`);
  const asked = message["role"];
  const role = typeof asked === "string" ? roles.get(asked) : undefined;
  if (role === undefined) {
    const known = [...roles.keys()].join(", ");
    throw new ParameterError(`${name}.role`, `${name}.role must be one of ${known}, got ${preview(asked ?? null)}`);
  }
  const content = readContent(message, role, `${name}.content`);
  return { ...(withoutBigints(message) as Record<string, unknown>), role, content };
}

/** @returns null for an assistant's message without content, which only called tools */
function readContent(message: JsonObject, role: string, name: string): string | null {
  const content = readValue(message, "content");
  if (typeof content === "string") return content;
  if (content === undefined) {
    if (role === "assistant") return null;
    throw new ParameterError(name, `${name} must be given`);
  }
  if (!Array.isArray(content)) {
    throw new ParameterError(name, `${name} must be a string or a list of text parts, got ${preview(content)}`);
  }
  return content.map((part, index) => textOf(part, `${name}[${index}]`)).join("\n");
}

function textOf(part: JsonValue, name: string): string {
  if (!isObject(part)) throw new ParameterError(name, `${name} must be an object, got ${preview(part)}`);
  const { type, text } = part;
  if (type === "text" && typeof text === "string") {
    refuseUnsupported(part, textPart, `${name}.`);
    return text;
  }
  throw new ParameterError(name, `${name} must be a part of type text: other types are not supported`);
}

/**
 * Makes the client's JSON fit for `JSON.stringify`. Baton's parser keeps whole numbers beyond 2^53
 * as bigints, which become the nearest double here.
 */
function withoutBigints(value: JsonValue): JsonValue {
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutBigints);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withoutBigints(member)]));
}

/**
 * Renders answers in the form of `/v1/chat/completions`.
 * @param choices number of choices of the answer
 */
export function chatRenderer(choices: number): ChoiceRenderer {
  /** Whether `renderChunks` has rendered the first record. */
  let begun = false;

  /** The first chunk of each choice names the role and has no text, as OpenAI's does. */
  const roleChunks = (): object[] =>
    Array.from({ length: choices }, (_, index) => ({
      index,
      delta: { role: "assistant", content: "", refusal: null },
      logprobs: null,
      finish_reason: null,
    }));

  return {
    idPrefix: "chatcmpl-",
    wholeObject: "chat.completion",
    chunkObject: "chat.completion.chunk",
    renderChoice: ({ text, logprobs, finishReason }, index) => ({
      index,
      message: { role: "assistant", content: text, refusal: null },
      logprobs: logprobs === undefined ? null : chatLogprobs(logprobs),
      finish_reason: finishReason,
    }),
    renderChunks: (record: TokenRecord) => {
      const first = begun ? [] : roleChunks();
      begun = true;
      return [...first, ...record.choices.flatMap(chunkOf)];
    },
    renderTextChunk: (text) => {
      if (!begun) return undefined;
      return text === '""' ? "" : `{"index":0,"delta":{"content":${text}},"logprobs":null,"finish_reason":null}`;
    },
  };
}

function chunkOf({ index, text, logprobs, finish_reason }: ChoiceDelta): object[] {
  if (text === "" && finish_reason === undefined && logprobs === undefined) return [];
  return [
    {
      index,
      // A last chunk without text has an empty delta. A chunk with only log probabilities keeps its
      // empty content, because clients read content from every delta but the last.
      delta: text === "" && finish_reason !== undefined ? {} : { content: text },
      logprobs: logprobs === undefined ? null : chatLogprobs(logprobs),
      finish_reason: finish_reason ?? null,
    },
  ];
}

function chatLogprobs(tokens: NonNullable<ChoiceDelta["logprobs"]>): object {
  return {
    content: tokens.map((token) => ({ ...renderToken(token), top_logprobs: token.top.map(renderToken) })),
    refusal: null,
  };
}

/** The members of a token in OpenAI's form: all but its id. */
function renderToken({ token, logprob, bytes }: TokenChance): object {
  return { token, logprob, bytes };
}
