/**
 * Reads the parameters that name strings and tokens: `stop` and `stop_token_ids` end a choice, and
 * `logit_bias` makes tokens more or less likely.
 */
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import { isIntegerIn, isWithin, ParameterError, preview, readValue } from "./parameters.js";

const maxStops = 16;
/** Longest stop string, in characters. */
const maxStopLength = 256;
const maxStopTokens = 64;
const maxBiases = 1024;
/** The limits of a bias are OpenAI's. */
const biasRange = { min: -100, max: 100 };

/**
 * Reads `stop`: one string or a list of strings.
 * @throws ParameterError
 */
export function readStops(body: JsonObject): string[] {
  const value = readValue(body, "stop");
  if (value === undefined) return [];
  const list = Array.isArray(value) ? value : [value];
  if (list.length > maxStops) {
    throw new ParameterError("stop", `stop has ${list.length} strings, more than the limit of ${maxStops}`);
  }
  return list.map(stopString);
}

function stopString(value: JsonValue): string {
  if (typeof value !== "string") {
    throw new ParameterError("stop", `stop must be a string or a list of strings, got ${preview(value)}`);
  }
  if (value === "") throw new ParameterError("stop", "stop must not hold an empty string");
  if (value.length > maxStopLength) {
    throw new ParameterError(
      "stop",
      `stop has a string of ${value.length} characters, more than the limit of ${maxStopLength}`,
    );
  }
  return value;
}

/** @throws ParameterError */
export function readStopTokens(body: JsonObject, vocabSize: number): number[] {
  const name = "stop_token_ids";
  const value = readValue(body, name);
  if (value === undefined) return [];
  if (!Array.isArray(value))
    throw new ParameterError(name, `${name} must be a list of token ids, got ${preview(value)}`);
  if (value.length > maxStopTokens) {
    throw new ParameterError(name, `${name} has ${value.length} ids, more than the limit of ${maxStopTokens}`);
  }
  return readTokenIds(value, name, vocabSize);
}

/** @throws ParameterError if an item of the list is no token id of the vocabulary */
export function readTokenIds(list: readonly JsonValue[], name: string, vocabSize: number): number[] {
  return list.map((token) => {
    if (isIntegerIn(token, 0, vocabSize - 1)) return token;
    throw new ParameterError(
      name,
      `${name} must hold token ids of the vocabulary, from 0 to ${vocabSize - 1}, got ${preview(token)}`,
    );
  });
}

/**
 * @returns pairs of a token id and the number to add to its logit
 * @throws ParameterError
 */
export function readLogitBias(body: JsonObject, vocabSize: number): [number, number][] {
  const name = "logit_bias";
  const value = readValue(body, name);
  if (value === undefined) return [];
  if (typeof value !== "object" || Array.isArray(value)) {
    throw new ParameterError(name, `${name} must be an object of token ids and numbers, got ${preview(value)}`);
  }
  const entries = Object.entries(value as JsonObject);
  if (entries.length > maxBiases) {
    throw new ParameterError(name, `${name} has ${entries.length} entries, more than the limit of ${maxBiases}`);
  }
  return entries.map(([key, bias]) => {
    const token = /^(?:0|[1-9]\d{0,14})$/.test(key) ? Number(key) : -1;
    if (!isIntegerIn(token, 0, vocabSize - 1)) {
      throw new ParameterError(
        name,
        `${name} must name token ids of the vocabulary, from 0 to ${vocabSize - 1}, got ${preview(key)}`,
      );
    }
    if (typeof bias !== "number" || !isWithin(bias, biasRange)) {
      throw new ParameterError(
        name,
        `${name} of token ${token} must be a number from ${biasRange.min} to ${biasRange.max}, got ${preview(bias)}`,
      );
    }
    return [token, bias];
  });
}
