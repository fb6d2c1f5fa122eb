/**
 * The messages of a chat, as templates expect them: a role they know, and text for content. What
 * else a message holds is the template's to read; the worker refuses what its template does not
 * look at.
 */
import type { PromptSpec } from "#shared/contract/generation.js";
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import { ParameterFault, shown } from "../generation/fault.js";
import { refuseUnobeyed } from "../generation/known.js";
import { given } from "../generation/read-member.js";
import { isObject } from "../v2/members.js";
import { textPart } from "./known.js";
import { plainJson } from "./plain-json.js";

type ChatMessages = Extract<PromptSpec, { kind: "chat" }>["messages"];

const maxMessages = 4096;

/** OpenAI renamed the system's role; templates know the old name. */
const roles: ReadonlyMap<string, string> = new Map([
  ["system", "system"],
  ["developer", "system"],
  ["user", "user"],
  ["assistant", "assistant"],
  ["tool", "tool"],
]);

export function readMessages(body: JsonObject): ChatMessages {
  const messages = given(body, "messages");
  if (!Array.isArray(messages)) {
    throw new ParameterFault("messages", `messages must be a list of messages, got ${shown(messages ?? null)}`);
  }
  if (messages.length === 0) throw new ParameterFault("messages", "messages must not be empty");
  if (messages.length > maxMessages) {
    throw new ParameterFault(
      "messages",
      `messages has ${messages.length} messages, more than the limit of ${maxMessages}`,
    );
  }
  return messages.map((message, index) => readMessage(message, `messages[${index}]`));
}

function readMessage(message: JsonValue, name: string): ChatMessages[number] {
  if (!isObject(message)) throw new ParameterFault(name, `${name} must be an object, got ${shown(message)}`);
  const asked = message["role"];
  const role = typeof asked === "string" ? roles.get(asked) : undefined;
  if (role === undefined) {
    const known = [...roles.keys()].join(", ");
    throw new ParameterFault(`${name}.role`, `${name}.role must be one of ${known}, got ${shown(asked ?? null)}`);
  }
  const content = readContent(message, role, `${name}.content`);
  return { ...(plainJson(message) as Record<string, unknown>), role, content };
}

/** An assistant that called tools said nothing. */
function readContent(message: JsonObject, role: string, name: string): string | null {
  const content = given(message, "content");
  if (typeof content === "string") return content;
  if (content === undefined) {
    if (role === "assistant") return null;
    throw new ParameterFault(name, `${name} must be given`);
  }
  if (!Array.isArray(content)) {
    throw new ParameterFault(name, `${name} must be a string or a list of text parts, got ${shown(content)}`);
  }
  return content.map((part, index) => textOf(part, `${name}[${index}]`)).join("\n");
}

function textOf(part: JsonValue, name: string): string {
  if (!isObject(part)) throw new ParameterFault(name, `${name} must be an object, got ${shown(part)}`);
  const { type, text } = part;
  if (type === "text" && typeof text === "string") {
    refuseUnobeyed(part, textPart, `${name}.`);
    return text;
  }
  throw new ParameterFault(name, `${name} must be a part of type text: other types are not supported`);
}
