/** Parameters that speak of strings and tokens: where a choice stops, and which tokens are made more or less likely. */
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import { ParameterFault, shown } from "./fault.js";
import { given, isIntegerIn, isWithin } from "./read-member.js";

const maxStops = 16;
const maxStopLength = 256;
const maxStopTokens = 64;
const maxBiases = 1024;
const biasRange = { min: -100, max: 100 };

export function readStops(body: JsonObject): string[] {
  const value = given(body, "stop");
  if (value === undefined) return [];
  const list = Array.isArray(value) ? value : [value];
  if (list.length > maxStops) {
    throw new ParameterFault("stop", `stop has ${list.length} strings, more than the limit of ${maxStops}`);
  }
  return list.map(stopString);
}

function stopString(value: JsonValue): string {
  if (typeof value !== "string") {
    throw new ParameterFault("stop", `stop must be a string or a list of strings, got ${shown(value)}`);
  }
  if (value === "") throw new ParameterFault("stop", "stop must not hold an empty string");
  if (value.length > maxStopLength) {
    throw new ParameterFault(
      "stop",
      `stop has a string of ${value.length} characters, more than the limit of ${maxStopLength}`,
    );
  }
  return value;
}

export function readStopTokens(body: JsonObject, vocabSize: number): number[] {
  const name = "stop_token_ids";
  const value = given(body, name);
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new ParameterFault(name, `${name} must be a list of token ids, got ${shown(value)}`);
  if (value.length > maxStopTokens) {
    throw new ParameterFault(name, `${name} has ${value.length} ids, more than the limit of ${maxStopTokens}`);
  }
  return readTokens(value, name, vocabSize);
}

export function readTokens(list: readonly JsonValue[], name: string, vocabSize: number): number[] {
  return list.map((token) => {
    if (isIntegerIn(token, 0, vocabSize - 1)) return token;
    throw new ParameterFault(
      name,
      `${name} must hold token ids of the vocabulary, from 0 to ${vocabSize - 1}, got ${shown(token)}`,
    );
  });
}

export function readLogitBias(body: JsonObject, vocabSize: number): [number, number][] {
  const name = "logit_bias";
  const value = given(body, name);
  if (value === undefined) return [];
  if (typeof value !== "object" || Array.isArray(value)) {
    throw new ParameterFault(name, `${name} must be an object of token ids and numbers, got ${shown(value)}`);
  }
  const entries = Object.entries(value as JsonObject);
  if (entries.length > maxBiases) {
    throw new ParameterFault(name, `${name} has ${entries.length} entries, more than the limit of ${maxBiases}`);
  }
  return entries.map(([key, bias]) => {
    const token = /^(?:0|[1-9]\d{0,14})$/.test(key) ? Number(key) : -1;
    if (!isIntegerIn(token, 0, vocabSize - 1)) {
      throw new ParameterFault(
        name,
        `${name} must name token ids of the vocabulary, from 0 to ${vocabSize - 1}, got ${shown(key)}`,
      );
    }
    if (typeof bias !== "number" || !isWithin(bias, biasRange)) {
      throw new ParameterFault(
        name,
        `${name} of token ${token} must be a number from ${biasRange.min} to ${biasRange.max}, got ${shown(bias)}`,
      );
    }
    return [token, bias];
  });
}
