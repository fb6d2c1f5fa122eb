/** Reads the body of `POST /v1/batches`. */
import { isObject } from "#shared/json/members.js";
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import { ParameterError } from "../generation/parameters.js";

export interface AskedBatch {
  readonly endpoint: string;
  readonly inputFile: string;
  readonly window: string;
  readonly windowMs: number;
  readonly metadata: Readonly<Record<string, string>> | null;
}

const textEndpoints = ["/v1/chat/completions", "/v1/completions"];
const modelEndpoint = /^\/v2\/models\/[A-Za-z0-9._-]{1,128}(?:\/versions\/\d{1,19})?\/(?:infer|generate)$/;
const units = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const LONGEST_WINDOW_MS = 7 * units.d;
/** OpenAI's limits. */
const metadataLimits = { pairs: 16, name: 64, value: 512 };

/** @throws InferenceError */
export function readCreate(body: JsonObject): AskedBatch {
  const { endpoint, input_file_id: inputFile, completion_window: window, metadata } = body;
  if (typeof inputFile !== "string" || inputFile === "")
    throw new ParameterError("input_file_id", "input_file_id must be the id of a file");
  const asked = readEndpoint(endpoint);
  if (typeof window !== "string")
    throw new ParameterError("completion_window", "completion_window must be a text such as 24h");
  return { endpoint: asked, inputFile, window, windowMs: readWindow(window), metadata: readMetadata(metadata) };
}

function readEndpoint(value: JsonValue | undefined): string {
  if (typeof value === "string" && (textEndpoints.includes(value) || modelEndpoint.test(value))) return value;
  const known = [...textEndpoints, "/v2/models/<model>/infer", "/v2/models/<model>/generate"];
  throw new ParameterError("endpoint", `endpoint must be one of ${known.join(", ")}`);
}

/** OpenAI always has `24h`. Baton also takes other numbers of seconds, minutes, hours and days. */
export function readWindow(text: string): number {
  const [, count = "", unit = ""] = /^([1-9]\d{0,6})([smhd])$/.exec(text) ?? [];
  const ms = Number(count) * (units[unit as keyof typeof units] ?? 0);
  if (ms > 0 && ms <= LONGEST_WINDOW_MS) return ms;
  throw new ParameterError(
    "completion_window",
    "completion_window must be a number of s, m, h or d, from 1s to 7d, such as 24h",
  );
}

function readMetadata(value: JsonValue | undefined): Readonly<Record<string, string>> | null {
  if (value === undefined || value === null) return null;
  const { pairs, name: longest, value: longestValue } = metadataLimits;
  const entries = isObject(value) ? Object.entries(value) : undefined;
  const fits =
    entries !== undefined &&
    entries.length <= pairs &&
    entries.every(([name, one]) => name.length <= longest && typeof one === "string" && one.length <= longestValue);
  if (fits) return Object.fromEntries(entries) as Readonly<Record<string, string>>;
  throw new ParameterError(
    "metadata",
    `metadata must be an object of at most ${pairs} texts, with names of up to ${longest} characters ` +
      `and values of up to ${longestValue}`,
  );
}
