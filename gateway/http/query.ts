/** Reads the query of a request's target. */
import type { IncomingMessage } from "node:http";
import { InferenceError } from "#shared/errors.js";

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
