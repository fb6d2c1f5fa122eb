/** Reads a query and the members of a body. Refuses every unknown name. */
import type { IncomingMessage } from "node:http";
import { InferenceError } from "#shared/errors.js";
import type { JsonObject } from "#shared/json/parse.js";

/**
 * Reads the parameters of a query. Ignores none, because a misspelt parameter would change the
 * answer without notice.
 * @param names all parameters of the path
 * @throws InferenceError for a parameter that the path does not have, or that comes twice
 */
export function readQuery<Name extends string>(
  { url = "" }: IncomingMessage,
  names: readonly Name[],
): Readonly<Partial<Record<Name, string>>> {
  const from = url.indexOf("?");
  const query: Partial<Record<Name, string>> = {};
  for (const [name, value] of from === -1 ? [] : new URLSearchParams(url.slice(from + 1).replace(/#.*$/, ""))) {
    const known = names.find((one) => one === name);
    if (known === undefined) {
      throw new InferenceError("invalid_argument", `unknown query parameter '${name}'; there are: ${names.join(", ")}`);
    }
    if (query[known] !== undefined) throw new InferenceError("invalid_argument", `'${name}' is given twice`);
    query[known] = value;
  }
  return query;
}

/** @throws InferenceError for an unknown member of the body */
export function withoutOthers(given: JsonObject, names: readonly string[]): JsonObject {
  const other = Object.keys(given).find((name) => !names.includes(name));
  if (other === undefined) return given;
  throw new InferenceError("invalid_argument", `unknown member '${other}' of the body; there are: ${names.join(", ")}`);
}
