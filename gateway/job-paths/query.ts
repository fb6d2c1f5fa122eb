/** Reads the query of a list, behind the `?` of its path. */
import { InferenceError } from "#shared/errors.js";

const DEFAULT_PAGE = 20;
const LONGEST_PAGE = 100;

/**
 * @param names the known parameters, each at most once
 * @throws InferenceError that names the wrong parameter
 */
export function readParameters(url: string, names: readonly string[]): ReadonlyMap<string, string> {
  const known = new Map<string, string>();
  for (const [name, value] of parametersOf(url)) {
    if (!names.includes(name)) throw unknownParameter(name, names);
    if (known.has(name)) throw refused(`'${name}' is given twice`);
    known.set(name, value);
  }
  return known;
}

export function parametersOf(url: string): URLSearchParams {
  const from = url.indexOf("?");
  return new URLSearchParams(from === -1 ? "" : url.slice(from + 1).replace(/#.*$/, ""));
}

export function unknownParameter(name: string, names: readonly string[]): InferenceError {
  return refused(`unknown query parameter '${name.slice(0, 64)}'; there are: ${names.join(", ")}`);
}

export function readLimit(text: string | undefined): number {
  if (text === undefined) return DEFAULT_PAGE;
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= LONGEST_PAGE) return limit;
  throw refused(`limit must be an integer from 1 to ${LONGEST_PAGE}, not '${text.slice(0, 64)}'`);
}

export function refused(message: string): InferenceError {
  return new InferenceError("invalid_argument", message);
}
