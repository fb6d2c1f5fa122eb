/**
 * The parameters of queries: a reader for the router and a schema for the document, side by side. A
 * query with an unknown parameter is refused, because a misspelt parameter would change the answer
 * without notice.
 */
import { InferenceError } from "#shared/errors.js";

/** A schema of JSON Schema 2020-12. */
export type Schema = Readonly<Record<string, unknown>>;

export interface Parameter<T> {
  readonly schema: Schema;
  /** Whether a query may give the parameter several times. */
  readonly repeats?: boolean;
  readonly says?: string;
  /**
   * @param texts none if the query does not give the parameter
   * @throws InferenceError
   */
  read(texts: readonly string[], name: string): T;
}

export type Parameters = Readonly<Record<string, Parameter<unknown>>>;
export type ParameterValues<P extends Parameters> = { readonly [N in keyof P]: ReturnType<P[N]["read"]> };

/** A text of any form; the service says what it may be. */
export const text: Parameter<string | undefined> = { schema: { type: "string" }, read: ([given]) => given };

/** The guard reads tickets, before the path's own parameters. */
export const ticketParameter: Parameter<string | undefined> = {
  ...text,
  says: "A ticket for this request (POST /v2/tickets), in place of a key.",
};

/** One of some words, or none. */
export function oneOf<W extends string>(words: readonly W[]): Parameter<W | undefined> {
  return {
    schema: { enum: words },
    read: ([given], name) => {
      const found = words.find((word) => word === given);
      if (given === undefined || found !== undefined) return found;
      throw new InferenceError("invalid_argument", `${name} must be ${words.join(" or ")}, not '${given}'`);
    },
  };
}

/**
 * How many items a page has at most.
 * @param digits most digits of the text, leading zeros included
 */
export function pageSize(usual: number, most: number, digits = 6): Parameter<number> {
  return {
    schema: { type: "integer", minimum: 1, maximum: most, default: usual },
    read: ([given], name) => {
      if (given === undefined) return usual;
      const size = /^\d+$/.test(given) && given.length <= digits ? Number(given) : 0;
      if (size >= 1 && size <= most) return size;
      throw new InferenceError("invalid_argument", `${name} must be an integer from 1 to ${most}, not '${given}'`);
    },
  };
}

/**
 * @param url with the query
 * @param ignoresOthers whether to ignore parameters that `parameters` does not name; if a parameter
 * then comes more than once, its first value counts
 * @throws InferenceError for a parameter that the path does not have, or that comes twice
 */
export function readQuery<P extends Parameters>(url: string, parameters: P, ignoresOthers = false): ParameterValues<P> {
  const given = new Map<string, string[]>();
  const from = url.indexOf("?");
  for (const [name, value] of from === -1 ? [] : new URLSearchParams(url.slice(from + 1).replace(/#.*$/, ""))) {
    const parameter = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
    if (parameter === undefined) {
      if (ignoresOthers) continue;
      const names = Object.keys(parameters).join(", ");
      throw new InferenceError("invalid_argument", `unknown query parameter '${name}'; there are: ${names}`);
    }
    const before = given.get(name);
    if (before === undefined) given.set(name, [value]);
    else if (parameter.repeats === true || ignoresOthers) before.push(value);
    else throw new InferenceError("invalid_argument", `'${name}' is given twice`);
  }
  const read = Object.entries(parameters).map(([name, parameter]) => [
    name,
    parameter.read(given.get(name) ?? [], name),
  ]);
  return Object.fromEntries(read) as ParameterValues<P>;
}
