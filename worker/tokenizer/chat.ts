/**
 * Renders messages to a text with the model's own chat template. Users' texts are only data for the
 * template: their control tokens come out escaped, and their braces never count as template code.
 */
import type { PromptSpec } from "#shared/contract/generation.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import type { NamedTokens } from "./control-tokens.js";
import { openTemplate, TemplateRefusal, type Render } from "./jinja.js";
import { escapeControlTokens, removeMarks, type AddedTokens } from "./added-tokens.js";

export type ChatPrompt = Extract<PromptSpec, { kind: "chat" }>;
type Message = ChatPrompt["messages"][number];
/** A message for the template, with all texts escaped. */
type Prepared = Readonly<Record<string, unknown>>;
interface TextPart {
  readonly type: "text";
  readonly text: string;
}

/** Most characters of a rendered text, because a template may repeat its input. */
const MAX_RENDERED_LENGTH = 4 * 2 ** 20;
/** Most characters of a template's own error in a reply to a client. */
const MAX_REASON_LENGTH = 500;
/** Most levels of nesting in a message, including the JSON in a call's arguments. */
const MAX_DEPTH = 64;
/** Most names of extra members in messages. For each name the template renders once more. */
const MAX_MEMBERS = 8;
const MAX_NAME_LENGTH = 64;
/**
 * Members that a template may ignore without a refusal. Clients send them to every model (the
 * speaker's name, the answered call, the source of a quotation), and few templates read them. Later
 * turns leave out the model's reasoning before an earlier answer by design.
 */
const NOT_FOR_THE_MODEL: ReadonlySet<string> = new Set([
  "role",
  "content",
  "name",
  "tool_call_id",
  "annotations",
  "reasoning",
  "reasoning_content",
]);
const KNOWN_ROLES = ["system", "developer", "user", "assistant", "tool", "function"];

export interface ChatOptions {
  /** The template's text. */
  readonly source: string;
  /** The template's variables, such as `bos_token`. */
  readonly variables: NamedTokens;
  /** The control tokens of the model. */
  readonly control: readonly { readonly content: string }[];
  /** Finds the same tokens in a text. */
  readonly controlMatcher: AddedTokens;
}

export class ChatTemplate {
  private readonly template: Render;
  private readonly options: ChatOptions;
  /**
   * Whether the template reads contents as texts or as lists of parts. Some templates read only one
   * form.
   */
  private readonly contentForm: "text" | "parts";

  /** @throws Error if the template is unreadable, or fails with the simplest conversation */
  constructor(options: ChatOptions) {
    this.options = options;
    try {
      this.template = openTemplate(options.source);
      this.contentForm = this.probeContentForm();
    } catch (cause) {
      throw new Error(`the chat template failed: ${reasonOf(cause)}`, { cause });
    }
  }

  /**
   * @returns the prompt's text, with users' control tokens escaped
   * @throws InferenceError `invalid_argument`
   */
  render({ messages, addGenerationPrompt }: ChatPrompt): string {
    if (messages.length === 0) throw fixedError("invalid_argument", "noMessages");
    const prepared = messages.map((message) => this.prepare(message));
    let text: string;
    try {
      text = this.run(prepared, addGenerationPrompt);
    } catch (cause) {
      const reason = reasonOf(cause);
      const message = cause instanceof TemplateRefusal ? reason : `the chat template failed: ${reason}`;
      throw new InferenceError("invalid_argument", message, { cause });
    }
    if (text.length > MAX_RENDERED_LENGTH) {
      throw fixedError("invalid_argument", "renderedTooLarge");
    }
    this.refuseIgnoredMembers(prepared, addGenerationPrompt, text);
    return text;
  }

  /**
   * Refuses a member that the template ignores, because the model would never know of it. Without
   * such a member, the rendered text stays the same.
   * @throws InferenceError `invalid_argument`
   */
  private refuseIgnoredMembers(messages: readonly Prepared[], addGenerationPrompt: boolean, text: string): void {
    const names = new Set(
      messages.flatMap((message) => Object.keys(message).filter((name) => isMeaningful(message, name))),
    );
    if (names.size > MAX_MEMBERS) {
      throw new InferenceError("invalid_argument", `the messages have more than ${MAX_MEMBERS} members of other names`);
    }
    for (const name of names) {
      const without = messages.map((message) => omit(message, name));
      if (this.differs(without, addGenerationPrompt, text)) continue;
      const index = messages.findIndex((message) => isMeaningful(message, name));
      const member = `messages[${index}].${removeMarks(name).slice(0, MAX_NAME_LENGTH)}`;
      throw new InferenceError("invalid_argument", `${member} is not supported: this model's chat template ignores it`);
    }
  }

  /**
   * Whether the messages give another text. A template that fails without a member reads that
   * member.
   */
  private differs(messages: readonly Prepared[], addGenerationPrompt: boolean, text: string): boolean {
    try {
      return this.run(messages, addGenerationPrompt) !== text;
    } catch {
      return true;
    }
  }

  private run(messages: readonly unknown[], addGenerationPrompt: boolean): string {
    const { variables } = this.options;
    return this.template({
      ...variables,
      messages,
      tools: null,
      documents: null,
      add_generation_prompt: addGenerationPrompt,
    });
  }

  /** Finds out which form the template reads, with a text that no template prints by itself. */
  private probeContentForm(): "text" | "parts" {
    const probe = "Zq7 vW3";
    const shows = (content: unknown): boolean => this.run([{ role: "user", content }], true).includes(probe);
    let failure: unknown;
    for (const form of ["text", "parts"] as const) {
      try {
        if (shows(form === "text" ? probe : [{ type: "text", text: probe }])) return form;
      } catch (cause) {
        // A template that refuses this short conversation by its own rules may accept others.
        if (cause instanceof TemplateRefusal) return "text";
        failure ??= cause;
      }
    }
    if (failure !== undefined) throw failure;
    return "text";
  }

  private prepare({ role, content, ...others }: Message): Prepared {
    this.checkRole(role);
    const rest = this.escapeJson(others) as Record<string, unknown>;
    const calls = others["tool_calls"];
    if (Array.isArray(calls)) rest["tool_calls"] = calls.map((call) => this.escapeJson(withParsedArguments(call)));
    if (content === undefined) return { role, ...rest };
    return { role, content: content === null ? null : this.contentOf(content), ...rest };
  }

  private contentOf(content: unknown): unknown {
    const parts: readonly TextPart[] =
      typeof content === "string" ? [{ type: "text", text: content }] : textPartsOf(content);
    if (this.contentForm === "parts") return parts.map(({ text }) => ({ type: "text", text: this.escape(text) }));
    return this.escape(parts.map(({ text }) => text).join(""));
  }

  /**
   * Refuses a role that could make another control token: many templates build their markup from
   * the role (`<|user|>`). Accepts roles that the template itself names.
   */
  private checkRole(role: string): void {
    const { source, control } = this.options;
    const known = KNOWN_ROLES.includes(role) || source.includes(`'${role}'`) || source.includes(`"${role}"`);
    const harmless =
      role !== "" && !control.some(({ content }) => content.includes(role)) && this.escape(role) === role;
    if (!known && !harmless) throw fixedError("invalid_argument", "unknownRole");
  }

  /** Escapes all texts in JSON from the client, keys included. */
  private escapeJson(value: unknown, depth = 0): unknown {
    if (depth > MAX_DEPTH) throw fixedError("invalid_argument", "nestedTooDeeply");
    if (typeof value === "string") return this.escape(value);
    if (Array.isArray(value)) return value.map((item) => this.escapeJson(item, depth + 1));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [this.escape(key), this.escapeJson(item, depth + 1)]),
    );
  }

  private escape(text: string): string {
    return escapeControlTokens(text, this.options.controlMatcher);
  }
}

/** Whether this member of a message holds something that the model should know. */
function isMeaningful(message: Prepared, name: string): boolean {
  if (NOT_FOR_THE_MODEL.has(name)) return false;
  const value = message[name];
  if (value === undefined || value === null || value === "" || value === false) return false;
  return typeof value !== "object" || Object.keys(value).length > 0;
}

function omit(message: Prepared, name: string): Prepared {
  return Object.fromEntries(Object.entries(message).filter(([key]) => key !== name));
}

/** @throws InferenceError `invalid_argument` for anything but a list of text parts */
function textPartsOf(content: unknown): TextPart[] {
  if (!Array.isArray(content)) {
    throw fixedError("invalid_argument", "messageContent");
  }
  return content.map((part: unknown): TextPart => {
    if (typeof part === "object" && part !== null && "type" in part && part.type === "text" && "text" in part) {
      if (typeof part.text === "string") return { type: "text", text: part.text };
    }
    throw fixedError("invalid_argument", "textPartsOnly");
  });
}

/**
 * OpenAI's calls carry their arguments as a JSON text. Templates expect an object there, as the
 * documentation of Transformers says.
 */
function withParsedArguments(call: unknown): unknown {
  if (typeof call !== "object" || call === null || !("function" in call)) return call;
  const called = call.function;
  if (typeof called !== "object" || called === null || !("arguments" in called)) return call;
  if (typeof called.arguments !== "string") return call;
  try {
    const parsed: unknown = JSON.parse(called.arguments);
    const isObject = typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
    return isObject ? { ...call, function: { ...called, arguments: parsed } } : call;
  } catch {
    // Other text than JSON stays as the client sent it, and the template decides.
    return call;
  }
}

function reasonOf(cause: unknown): string {
  const text = cause instanceof Error ? cause.message : String(cause);
  return removeMarks(text).slice(0, MAX_REASON_LENGTH);
}
