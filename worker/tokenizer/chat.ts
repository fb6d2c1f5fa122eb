/** Messages to text, by the model's own template. What users wrote is data in it: its control tokens come out marked, and its braces are never looked at. */
import type { PromptSpec } from "#shared/contract/generation.js";
import { InferenceError } from "#shared/errors.js";
import type { NamedTokens } from "./control.js";
import { openTemplate, TemplateRefusal, type Render } from "./jinja.js";
import { inert, withoutMarks, type AddedTokens } from "./added-tokens.js";

export type ChatPrompt = Extract<PromptSpec, { kind: "chat" }>;
type Message = ChatPrompt["messages"][number];
/** As the template gets it. */
type Prepared = Readonly<Record<string, unknown>>;
interface TextPart {
  readonly type: "text";
  readonly text: string;
}

/** A template may repeat what it is given, but not without end. */
const MAX_RENDERED_LENGTH = 4 * 2 ** 20;
const MAX_REASON_LENGTH = 500;
/** Of JSON inside of a call's arguments, too. */
const MAX_DEPTH = 64;
/** Of messages, beside those that each has: the text is made once more for each. */
const MAX_MEMBERS = 8;
const MAX_NAME_LENGTH = 64;
/**
 * Who speaks, which call is answered, where a quotation is from: clients say it to every model, and
 * few are told. What a model thought before it answered is left out of later turns by design.
 */
const PASSED_OVER: ReadonlySet<string> = new Set([
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
  readonly source: string;
  /** `bos_token` and so on. */
  readonly variables: NamedTokens;
  readonly control: readonly { readonly content: string }[];
  readonly controls: AddedTokens;
}

export class ChatTemplate {
  private readonly template: Render;
  private readonly options: ChatOptions;
  /** Some templates take contents in one form alone. */
  private readonly form: "text" | "parts";

  /** @throws Error when the template cannot be read, or fails with the simplest of conversations */
  constructor(options: ChatOptions) {
    this.options = options;
    try {
      this.template = openTemplate(options.source);
      this.form = this.formOfContents();
    } catch (cause) {
      throw new Error(`the chat template failed: ${reasonOf(cause)}`, { cause });
    }
  }

  /** @returns text with marks. @throws InferenceError */
  render({ messages, addGenerationPrompt }: ChatPrompt): string {
    if (messages.length === 0) throw new InferenceError("invalid_argument", "the prompt has no messages");
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
      throw new InferenceError("invalid_argument", "the prompt is too large after the chat template");
    }
    this.checkRead(prepared, addGenerationPrompt, text);
    return text;
  }

  /**
   * A member that makes no difference to the text is one that the template does not look at, so the
   * model would not know of it. @throws InferenceError
   */
  private checkRead(messages: readonly Prepared[], addGenerationPrompt: boolean, text: string): void {
    const names = new Set(messages.flatMap((message) => Object.keys(message).filter((name) => says(message, name))));
    if (names.size > MAX_MEMBERS) {
      throw new InferenceError("invalid_argument", `the messages have more than ${MAX_MEMBERS} members of other names`);
    }
    for (const name of names) {
      const without = messages.map((message) => omit(message, name));
      if (this.differs(without, addGenerationPrompt, text)) continue;
      const index = messages.findIndex((message) => says(message, name));
      const member = `messages[${index}].${withoutMarks(name).slice(0, MAX_NAME_LENGTH)}`;
      throw new InferenceError("invalid_argument", `${member} is not supported: this model's chat template ignores it`);
    }
  }

  /** What fails without a member depends on it. */
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

  /** Tried with a text that no template prints by itself. */
  private formOfContents(): "text" | "parts" {
    const probe = "Zq7 vW3";
    const shows = (content: unknown): boolean => this.run([{ role: "user", content }], true).includes(probe);
    let failure: unknown;
    for (const form of ["text", "parts"] as const) {
      try {
        if (shows(form === "text" ? probe : [{ type: "text", text: probe }])) return form;
      } catch (cause) {
        // A template that refuses so short a conversation may take others.
        if (cause instanceof TemplateRefusal) return "text";
        failure ??= cause;
      }
    }
    if (failure !== undefined) throw failure;
    return "text";
  }

  private prepare({ role, content, ...others }: Message): Prepared {
    this.checkRole(role);
    const rest = this.data(others) as Record<string, unknown>;
    const calls = others["tool_calls"];
    if (Array.isArray(calls)) rest["tool_calls"] = calls.map((call) => this.data(withParsedArguments(call)));
    if (content === undefined) return { role, ...rest };
    return { role, content: content === null ? null : this.contentOf(content), ...rest };
  }

  private contentOf(content: unknown): unknown {
    const parts: readonly TextPart[] =
      typeof content === "string" ? [{ type: "text", text: content }] : textPartsOf(content);
    if (this.form === "parts") return parts.map(({ text }) => ({ type: "text", text: this.inert(text) }));
    return this.inert(parts.map(({ text }) => text).join(""));
  }

  /** Roles are part of the markup in many templates (`<|user|>`), so one that would make another control token is refused. */
  private checkRole(role: string): void {
    const { source, control } = this.options;
    const known = KNOWN_ROLES.includes(role) || source.includes(`'${role}'`) || source.includes(`"${role}"`);
    const harmless = role !== "" && !control.some(({ content }) => content.includes(role)) && this.inert(role) === role;
    if (!known && !harmless)
      throw new InferenceError("invalid_argument", `a message's role is not known to this model`);
  }

  /** Whatever JSON the client sent, keys included. */
  private data(value: unknown, depth = 0): unknown {
    if (depth > MAX_DEPTH) throw new InferenceError("invalid_argument", "the prompt is nested too deeply");
    if (typeof value === "string") return this.inert(value);
    if (Array.isArray(value)) return value.map((item) => this.data(item, depth + 1));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [this.inert(key), this.data(item, depth + 1)]),
    );
  }

  private inert(text: string): string {
    return inert(text, this.options.controls);
  }
}

/** Whether a message has something to say in this member that a model should be told. */
function says(message: Prepared, name: string): boolean {
  if (PASSED_OVER.has(name)) return false;
  const value = message[name];
  if (value === undefined || value === null || value === "" || value === false) return false;
  return typeof value !== "object" || Object.keys(value).length > 0;
}

function omit(message: Prepared, name: string): Prepared {
  return Object.fromEntries(Object.entries(message).filter(([key]) => key !== name));
}

/** @throws InferenceError */
function textPartsOf(content: unknown): TextPart[] {
  if (!Array.isArray(content)) {
    throw new InferenceError("invalid_argument", "a message's content must be a text or a list of parts");
  }
  return content.map((part: unknown): TextPart => {
    if (typeof part === "object" && part !== null && "type" in part && part.type === "text" && "text" in part) {
      if (typeof part.text === "string") return { type: "text", text: part.text };
    }
    throw new InferenceError("invalid_argument", "this model takes no content parts but those of type 'text'");
  });
}

/** OpenAI's calls carry their arguments as JSON in a text; templates, as Transformers documents them, expect the object. */
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
    // As the client sent it: what becomes of it is the template's affair.
    return call;
  }
}

function reasonOf(cause: unknown): string {
  const text = cause instanceof Error ? cause.message : String(cause);
  return withoutMarks(text).slice(0, MAX_REASON_LENGTH);
}
