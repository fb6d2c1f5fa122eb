/**
 * Reads a ModelConfig in protobuf's JSON form, as a load request gives it: names in snake_case or
 * camelCase, 64-bit integers as numbers or strings, enum names in any case. The reader writes the
 * JSON as text format and reads that, so both forms have the same rules.
 */
import { JsonError } from "#shared/json/error.js";
import { isObject } from "#shared/json/members.js";
import { parseJson, type JsonValue } from "#shared/json/parse.js";
import type { ModelConfig } from "#shared/model/config.js";
import { LoadError } from "../../thread/load-error.js";
import type { Field, Message } from "./message.js";
import { modelConfig } from "./schema.js";
import { parseTextFormat } from "./text-format.js";

/** @throws LoadError */
export function parseConfigJson(source: string): ModelConfig {
  try {
    const given = parseJson(Buffer.from(source));
    if (!isObject(given)) throw new LoadError("the configuration is not a JSON object");
    return parseTextFormat(modelConfig, Buffer.from(textOf(modelConfig, given)), "config");
  } catch (error) {
    if (!(error instanceof LoadError) && !(error instanceof JsonError)) throw error;
    throw new LoadError(`Invalid config override: ${error.message}`, { cause: error });
  }
}

/** @returns the fields as text format */
function textOf(message: Message, given: Readonly<Record<string, JsonValue>>): string {
  const fields = Object.entries(given).map(([written, value]) => {
    const name = fieldName(message, written);
    const field = message.fields.get(name);
    if (field === undefined) throw new LoadError(`${message.name} has no field named "${written}"`);
    return valuesOf(name, field, value)
      .map((text) => `${name}: ${text}`)
      .join("\n");
  });
  return fields.join("\n");
}

/** @returns the field's own name for a name in camelCase; any other name unchanged */
function fieldName({ fields }: Message, written: string): string {
  if (fields.has(written)) return written;
  const camel = (name: string) => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  return [...fields.keys()].find((name) => camel(name) === written) ?? written;
}

/** As in protobuf, null is an absent field. */
function valuesOf(name: string, field: Field, value: JsonValue): string[] {
  if (value === null) return [];
  if (field.label === "singular") return [valueOf(name, field, value)];
  if (field.label === "repeated") {
    if (!Array.isArray(value)) throw new LoadError(`"${name}" must be an array`);
    return value.map((one) => valueOf(name, field, one));
  }
  if (!isObject(value)) throw new LoadError(`"${name}" must be an object`);
  return Object.entries(value).map(([key, one]) => {
    const keyText = field.key === undefined || field.key === "string" ? quoted(key) : plain(name, key);
    return `{ key: ${keyText} value: ${valueOf(name, field, one)} }`;
  });
}

function valueOf(name: string, { type }: Field, value: JsonValue): string {
  if (typeof type === "object" && type.kind === "message") {
    if (!isObject(value)) throw new LoadError(`"${name}" must be an object`);
    return `{ ${textOf(type, value)} }`;
  }
  if (typeof value === "boolean" || typeof value === "number" || typeof value === "bigint") return String(value);
  if (typeof value !== "string") throw new LoadError(`"${name}" must be a single value`);
  if (type === "string") return quoted(value);
  return plain(name, typeof type === "object" ? value.toUpperCase() : value);
}

/** @throws LoadError for text that is more than one number or word */
function plain(name: string, text: string): string {
  if (!/^-?[\w.+-]{1,64}$/.test(text)) throw new LoadError(`"${name}" has an invalid value`);
  return text;
}

/** Writes every byte as an octal number of three digits, so that no byte ends the text. */
function quoted(text: string): string {
  const bytes = Array.from(Buffer.from(text), (byte) => `\\${byte.toString(8).padStart(3, "0")}`);
  return `"${bytes.join("")}"`;
}
