/** Reads a query and the members of a body, of which none that is unknown may be ignored. */
import type { IncomingMessage } from "node:http";
import { InferenceError } from "#shared/errors.js";
import type { JsonObject } from "#shared/json/parse.js";

/**
 * A misspelt parameter could mean something else than what is answered, so none is ignored.
 * @param names of all parameters that the path has
 * @throws InferenceError for one that the path does not have, or that comes twice
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

/** @throws InferenceError for a member that the body may not have */
export function withoutOthers(given: JsonObject, names: readonly string[]): JsonObject {
  const other = Object.keys(given).find((name) => !names.includes(name));
  if (other === undefined) return given;
  throw new InferenceError("invalid_argument", `unknown member '${other}' of the body; there are: ${names.join(", ")}`);
}
