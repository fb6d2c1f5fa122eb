/**
 * Splits a client's body for a job into the body of the request and the options of the job. The
 * body keeps its bytes, so that the reader reads the body as on the path that answers at once.
 */
import { InferenceError } from "#shared/errors.js";
import { invalidJson, parseRequestJson } from "#shared/json/members.js";
import { JsonError } from "#shared/json/error.js";
import type { JsonObject } from "#shared/json/parse.js";
import { rootMembers } from "#shared/json/root-members.js";

export const jobTypes = ["infer", "generate", "chat", "completion"] as const;

export type JobType = (typeof jobTypes)[number];

export interface Envelope {
  readonly type: JobType;
  /** A copy that belongs to the reader. */
  readonly body: Buffer;
  /** All other members. */
  readonly options: JsonObject;
}

/** @throws InferenceError */
export function readEnvelope(bytes: Buffer): Envelope {
  const members = split(bytes);
  const given = jobTypes.filter((type) => members.has(type));
  const [type] = given;
  const body = type && members.get(type);
  if (type === undefined || body === undefined || given.length > 1) {
    const found = given.length === 0 ? "none" : given.join(" and ");
    throw new InferenceError(
      "invalid_argument",
      `a job has exactly one of the members ${jobTypes.join(", ")} with the body of its request; there is ${found}`,
    );
  }
  const options = [...members].filter(([name]) => name !== type);
  const text = `{${options.map(([name, value]) => `${JSON.stringify(name)}:${value.toString("utf8")}`).join(",")}}`;
  return { type, body: Buffer.from(body), options: parseRequestJson(Buffer.from(text)) };
}

/**
 * The bytes to keep for one more run. Without the options, because the record has the options, and
 * must not have the secret of a webhook as the client has sent it.
 * @param bytes the client's whole body
 */
export function keptBody({ type, body, options }: Envelope, bytes: Buffer): Buffer {
  if (!("webhook" in options)) return bytes;
  return Buffer.concat([Buffer.from(`{"${type}":`), body, Buffer.from("}")]);
}

function split(bytes: Buffer): Map<string, Buffer> {
  try {
    return rootMembers(bytes);
  } catch (error) {
    if (error instanceof JsonError) throw invalidJson(error.message, error);
    throw error;
  }
}
