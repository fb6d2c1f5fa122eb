/**
 * Splits what a client sends for a job into the body of the request and the options of the job. The
 * body stays the bytes that it is, so that it is read as on the path that answers at once.
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
  /** A copy, which is the reader's. */
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
 * What is kept for one more run. The secret of a webhook must not lie there as it was sent, and the
 * options are kept by themselves.
 * @param bytes all that the client has sent
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
