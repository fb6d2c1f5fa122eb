/**
 * Parses protobuf's text format as strictly as Triton reads config.pbtxt: the first unknown field,
 * second value or stray comma is an error with its line and column. No npm library does this: they
 * guess at types, keep unknown fields or know no schema.
 */
import { LoadError } from "../../thread/load-error.js";
import type { Enum, Field, FieldType, Message, Scalar } from "./message.js";
import { readScalar, type ScalarValue } from "./scalar.js";
import { Tokenizer, type Token } from "./tokenizer.js";

/** The largest known configuration has a few kilobytes. */
export const MAX_CONFIG_BYTES = 1 << 20;
/** Protobuf's own limit. */
const MAX_NESTING = 100;

type Value = ScalarValue | object;
/** The values so far, by field. A map field has its entries by key. */
type Given = Map<string, Value>;

/**
 * @param file the file's name in errors
 * @throws LoadError
 */
export function parseTextFormat<T>(message: Message<T>, source: Uint8Array, file: string): T {
  if (source.byteLength > MAX_CONFIG_BYTES) {
    throw new LoadError(`${file}: is larger than ${MAX_CONFIG_BYTES} bytes (${source.byteLength})`);
  }
  return new Parser(new Tokenizer(file, source)).root(message) as T;
}

/** A message without any given field. */
export function defaultMessage<T>(message: Message<T>): T {
  return finish(message, new Map()) as T;
}

class Parser {
  private readonly tokens: Tokenizer;
  /** Names of the fields around the parser's place, the outermost first. */
  private readonly path: string[] = [];

  constructor(tokens: Tokenizer) {
    this.tokens = tokens;
  }

  root(message: Message): object {
    const given: Given = new Map();
    while (this.tokens.current.kind !== "end") this.field(message, given);
    return finish(message, given);
  }

  private field(message: Message, given: Given): void {
    const start = this.tokens.current;
    if (start.kind !== "identifier") this.fail(start, `Expected identifier, got: ${start.text.slice(0, 64)}`);
    const name = this.tokens.next().text;
    const field = message.fields.get(name);
    if (field === undefined) {
      this.tokens.fail(start, `Message type "${message.name}" has no field named "${name}".`);
    }
    this.refuseSecond(message, given, name, field, start);
    this.path.push(name);
    if (isMessage(field)) this.take(":");
    else this.need(":");
    if (field.label !== "singular" && this.take("[")) this.list(message, given, name, field);
    else this.keep(given, name, field, this.value(message, name, field));
    this.path.pop();
    if (!this.take(";")) this.take(",");
  }

  private list(message: Message, given: Given, name: string, field: Field): void {
    keepAll(given, name, field, []);
    if (this.take("]")) return;
    do {
      this.keep(given, name, field, this.value(message, name, field));
    } while (!this.closes("]"));
  }

  /**
   * @returns whether the list ended; if not, the call has read a comma, and an element must follow
   */
  private closes(end: string): boolean {
    if (this.take(end)) return true;
    this.need(",");
    return false;
  }

  private value(message: Message, name: string, field: Field): Value {
    const type = typeof field.type === "object" && field.type.kind === "message" ? field.type : undefined;
    if (field.label === "map") {
      const entry = this.body(entryOf(message, name, field));
      return type === undefined ? entry : { value: finish(type, new Map()), ...entry };
    }
    if (type !== undefined) return this.body(type);
    return readScalar(this.tokens, field.type as Scalar | Enum, (token, text) => this.fail(token, text));
  }

  /** Reads a message in braces or angle brackets. */
  private body(message: Message): object {
    if (this.path.length > MAX_NESTING) {
      const limit = `the parser exceeded the configured recursion limit of ${MAX_NESTING}`;
      this.fail(this.tokens.current, `Message is too deep, ${limit}.`);
    }
    const end = this.take("<") ? ">" : "}";
    if (end === "}") this.need("{");
    const given: Given = new Map();
    while (!this.sees(">") && !this.sees("}")) this.field(message, given);
    this.need(end);
    return finish(message, given);
  }

  private keep(given: Given, name: string, field: Field, value: Value): void {
    if (field.label === "singular") given.set(name, value);
    else keepAll(given, name, field, [value]);
  }

  /** @throws LoadError for a second value of a field, or of its oneof */
  private refuseSecond(message: Message, given: Given, name: string, field: Field, at: Token): void {
    if (field.label !== "singular") return;
    if (isPresent(field, given.get(name))) {
      this.tokens.fail(at, `Non-repeated field "${name}" is specified multiple times.`);
    }
    if (field.oneof === undefined) return;
    for (const [other, { oneof }] of message.fields) {
      if (oneof !== field.oneof || !given.has(other)) continue;
      const both = `Field "${name}" is specified along with field "${other}"`;
      this.tokens.fail(at, `${both}, another member of oneof "${field.oneof}".`);
    }
  }

  private sees(symbol: string): boolean {
    return this.tokens.current.kind === "symbol" && this.tokens.current.text === symbol;
  }

  private take(symbol: string): boolean {
    const seen = this.sees(symbol);
    if (seen) this.tokens.next();
    return seen;
  }

  private need(symbol: string): void {
    const { current } = this.tokens;
    if (!this.take(symbol)) this.fail(current, `Expected "${symbol}", found "${current.text.slice(0, 64)}"`);
  }

  private fail(at: Token, message: string): never {
    const field = this.path.length === 0 ? "" : ` (in field "${this.path.join(".")}")`;
    this.tokens.fail(at, `${message}${field}.`);
  }
}

function isMessage({ label, type }: Field): boolean {
  return label === "map" || (typeof type === "object" && type.kind === "message");
}

/**
 * Whether a field counts as set. In proto3 a scalar outside of a oneof has no presence: its zero
 * value counts as not set.
 */
function isPresent(field: Field, value: Value | undefined): boolean {
  return value !== undefined && (field.oneof !== undefined || isMessage(field) || value !== zero(field.type));
}

function keepAll(given: Given, name: string, field: Field, values: readonly Value[]): void {
  if (field.label === "repeated") {
    const list = (given.get(name) ?? []) as Value[];
    list.push(...values);
    given.set(name, list);
    return;
  }
  const entries = (given.get(name) ?? new Map()) as Map<string, Value>;
  for (const { key, value } of values as readonly { key: ScalarValue; value: Value }[]) entries.set(`${key}`, value);
  given.set(name, entries);
}

/** Describes the message that protobuf generates for the entries of a map. */
function entryOf(message: Message, name: string, { key = "string", type }: Field): Message {
  const camel = name.replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase());
  const fields = new Map<string, Field>([
    ["key", { label: "singular", type: key }],
    ["value", { label: "singular", type }],
  ]);
  return { kind: "message", name: `${message.name}.${camel}Entry`, fields };
}

/**
 * Makes the message's object, with defaults, in the schema's order. `fromEntries` defines
 * properties, so that a key called `__proto__` is only a key.
 */
function finish(message: Message, given: Given): object {
  const fields = [...message.fields].flatMap(([name, field]): [string, Value][] => {
    const value = given.get(name);
    if (value instanceof Map) return [[name, Object.fromEntries(value) as object]];
    if (value !== undefined) return [[name, value]];
    if (field.label === "repeated") return [[name, []]];
    if (field.label === "map") return [[name, {}]];
    return field.oneof !== undefined || isMessage(field) ? [] : [[name, zero(field.type)]];
  });
  return Object.fromEntries(fields);
}

function zero(type: FieldType): ScalarValue {
  if (typeof type === "object") return type.kind === "enum" ? (type.values[0] ?? "") : "";
  if (type === "string") return "";
  return type === "bool" ? false : 0;
}
