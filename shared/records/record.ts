/**
 * How to declare a record: a text or a list of several fields that lies in Redis, or that processes
 * hand each other. The declaration names each field once. Scripts (`lua.ts`) and TypeScript read
 * and write the record by these names.
 */

export interface Field<Value> {
  /** A Lua pattern without captures; undefined for any text up to the next separator. */
  readonly pattern: string | undefined;
  /** Whether a script that unpacks the record has a Lua number here, and not a text. */
  readonly isNumber: boolean;
  /** The value in a new record, as Lua. */
  readonly initial: string;
  /** The separator before this field; undefined: the separator of the record. */
  readonly separator?: string;
  /** @param raw the value itself, in the reply of a script */
  read(text: string, raw?: unknown): Value;
  write(value: Value): string;
}

export type Fields = Readonly<Record<string, Field<unknown>>>;

type ValueOf<F> = F extends Field<infer Value> ? Value : never;

/** The values of a record, by the names of its fields. */
export type Values<F extends Fields> = { readonly [N in keyof F]: ValueOf<F[N]> };

interface Place {
  readonly name: string;
  readonly field: Field<unknown>;
  /** The separator before the field; "" before the first field. */
  readonly before: string;
}

export class TextRecord<F extends Fields> {
  readonly fields: F;
  readonly places: readonly Place[];
  readonly #separator: string;
  readonly #form: RegExp;

  constructor(separator: string, fields: F) {
    this.fields = fields;
    this.#separator = separator;
    this.places = Object.entries(fields).map(([name, field], i) => {
      return { name, field, before: i === 0 ? "" : (field.separator ?? separator) };
    });
    const pattern = this.pattern(this.places.map(({ name }) => name));
    this.#form = formOf(pattern);
  }

  /** @throws TypeError for a text that is no such record */
  parse(text: string): Values<F> {
    const values = this.read(text);
    if (values === undefined) throw new TypeError(`no such record: ${JSON.stringify(text)}`);
    return values;
  }

  /** @returns undefined for a text that is no such record */
  read(text: string): Values<F> | undefined {
    const found = this.#form.exec(text);
    if (found === null) return undefined;
    const values: Record<string, unknown> = {};
    for (const [i, { name, field }] of this.places.entries()) values[name] = field.read(found[i + 1] ?? "");
    return values as Values<F>;
  }

  write(values: Values<F>): string {
    return this.places.map(({ name, field, before }) => before + field.write(values[name])).join("");
  }

  /** The Lua pattern that captures these fields. */
  pattern(names: readonly string[]): string {
    const end = this.places.findLastIndex(({ name }) => names.includes(name)) + 1;
    const forms = this.places.slice(0, end).map(({ name, field, before }, i) => {
      const form = field.pattern ?? `[^${this.places[i + 1]?.before ?? this.#separator}]*`;
      return before + (names.includes(name) ? `(${form})` : form);
    });
    return `^${forms.join("")}${end === this.places.length ? "$" : ""}`;
  }
}

/** A list of values: a part of a script's reply, or values that a script packs with `cmsgpack`. */
export class ListRecord<F extends Fields> {
  readonly fields: F;
  readonly places: readonly Place[];
  readonly #forms: readonly RegExp[];

  constructor(fields: F) {
    this.fields = fields;
    this.places = Object.entries(fields).map(([name, field]) => ({ name, field, before: "" }));
    this.#forms = this.places.map(({ field }) => (field.pattern === undefined ? /^/ : formOf(`^${field.pattern}$`)));
  }

  /** @throws TypeError for a reply that is no such list */
  read(reply: unknown): Values<F> {
    const list: readonly unknown[] = Array.isArray(reply) ? reply : [];
    if (list.length !== this.places.length) throw new TypeError(`a list of ${list.length} values is no such record`);
    const values: Record<string, unknown> = {};
    for (const [i, { name, field }] of this.places.entries()) {
      const text = textOf(list[i]);
      if (this.#forms[i]?.test(text) !== true) throw new TypeError(`no such ${name}: ${JSON.stringify(text)}`);
      values[name] = field.read(text, list[i]);
    }
    return values as Values<F>;
  }
}

/**
 * The same form as a Lua pattern.
 * @throws TypeError for a class of characters that means something else there
 */
function formOf(pattern: string): RegExp {
  if (/%[^d\W]/.test(pattern)) throw new TypeError(`only %d is a class of both: ${pattern}`);
  return new RegExp(pattern.replaceAll("|", String.raw`\|`).replaceAll("%", "\\"), "s");
}

/** @throws TypeError for a reply that is neither string nor number */
export function textOf(reply: unknown): string {
  if (Buffer.isBuffer(reply)) return reply.toString("utf8");
  if (typeof reply === "string" || typeof reply === "number") return String(reply);
  throw new TypeError(`expected a string reply, got ${typeof reply}`);
}

export function list<F extends Fields>(fields: F): ListRecord<F> {
  return new ListRecord(fields);
}

/** @param separator stands between two fields */
export function record<F extends Fields>(separator: string, fields: F): TextRecord<F> {
  return new TextRecord(separator, fields);
}

const anyText = { isNumber: false, initial: "''", read: (text: string) => text, write: (value: string) => value };
const decimal = { isNumber: false, initial: "'0'", read: Number, write: String };

/** A whole number, and a Lua number in scripts. */
export const number = (initial = 0): Field<number> => ({
  ...decimal,
  pattern: "%d+",
  isNumber: true,
  initial: String(initial),
});

/**
 * A whole number, and a text of digits in scripts.
 * @param width the digits that TypeScript writes at least, with zeros in front
 */
export const digits = (width = 1): Field<number> => ({
  ...decimal,
  pattern: "%d+",
  write: (value) => String(value).padStart(width, "0"),
});

/** The same, or "" for undefined. */
export const maybe = (): Field<number | undefined> => ({
  ...anyText,
  pattern: "%d*",
  read: (text) => (text === "" ? undefined : Number(text)),
  write: (value) => String(value ?? ""),
});

/** A whole number that may be negative, or "" for undefined. */
export const maybeSigned = (): Field<number | undefined> => ({ ...maybe(), pattern: "%-?%d*" });

/** A whole number that may be negative. */
export const signed = (): Field<number> => ({ ...decimal, pattern: "%-?%d+" });

/** Bytes in the reply of a script; undefined for none. */
export const bytes = (): Field<Buffer | undefined> => ({
  ...anyText,
  pattern: undefined,
  read: (text, raw) => (text !== "" && Buffer.isBuffer(raw) ? raw : undefined),
  write: (value) => String(value ?? ""),
});

/** Any text without the next separator. */
export const text = (): Field<string> => ({ ...anyText, pattern: undefined });

/** The same, or undefined for "". */
export const maybeText = (): Field<string | undefined> => ({
  ...anyText,
  pattern: undefined,
  read: (read) => (read === "" ? undefined : read),
  write: (value) => value ?? "",
});

/** Texts without spaces, with a space between two of them. */
export const words = (): Field<readonly string[]> => ({
  ...anyText,
  pattern: undefined,
  read: (joined) => joined.split(" ").filter((word) => word !== ""),
  write: (list) => list.join(" "),
});

/** A text of this form, as a Lua pattern. */
export const like = (pattern: string, initial = ""): Field<string> => ({
  ...anyText,
  pattern,
  initial: `'${initial}'`,
});

/** Any text, as the last field. */
export const rest = (): Field<string> => ({ ...anyText, pattern: ".*" });

/** A field with a separator of its own before it. */
export const behind = <Value>(separator: string, field: Field<Value>): Field<Value> => ({ ...field, separator });
