/** Reads the members of a client's webhook: its URL, its events and its secret. */
import { InferenceError } from "#shared/errors.js";
import { asArray, asString } from "#shared/json/members.js";
import type { JsonValue } from "#shared/json/parse.js";
import { destinationFault, type AddressRanges } from "./addresses.js";
import { isSecret } from "./secrets.js";

/**
 * @returns the URL in the form in which every process reads it
 * @throws InferenceError `url_not_allowed`
 */
export async function readUrl(value: JsonValue, allowed: AddressRanges): Promise<string> {
  const text = asString(value, "url");
  const fault = await destinationFault(text, allowed);
  if (fault !== undefined) throw new InferenceError("url_not_allowed", fault);
  return new URL(text).href;
}

/** @returns each event once, in the order of `known` */
export function readEvents<Type extends string>(value: JsonValue, known: readonly Type[]): Type[] {
  const given = asArray(value, "events").map((one) => asString(one, "events"));
  const wrong = given.find((one) => !known.some((type) => type === one));
  if (wrong !== undefined) {
    throw new InferenceError("invalid_argument", `there is no event '${wrong}'; there are: ${known.join(", ")}`);
  }
  if (given.length === 0) throw new InferenceError("invalid_argument", "events must name at least one event");
  return known.filter((type) => given.includes(type));
}

/** Reads a secret. The error does not repeat the text, because the text may be a secret. */
export function readSecret(value: JsonValue): string {
  if (typeof value === "string" && isSecret(value)) return value;
  throw new InferenceError("invalid_argument", "secret must be whsec_ and the base64 of 24 to 64 bytes");
}
