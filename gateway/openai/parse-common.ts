/** What the bodies of both of OpenAI's paths share. */
import type { PromptSpec, SamplingSpec } from "#shared/contract/generation.js";
import type { JsonObject } from "#shared/json/parse.js";
import { checkTurn, readConversation } from "../generation/conversation.js";
import { ParameterFault } from "../generation/fault.js";
import { refuseUnobeyed } from "../generation/known.js";
import { given, readBoolean } from "../generation/read-member.js";
import type { GenerationRequest } from "../inference.js";
import { isObject } from "../v2/members.js";
import { streamOptions, textFormat } from "./known.js";

export interface Delivery {
  readonly stream: boolean;
  /** A last chunk says what was used; only where it streams. */
  readonly includeUsage: boolean;
}

export function readDelivery(body: JsonObject): Delivery {
  const stream = readBoolean(body, "stream") ?? false;
  const options = given(body, "stream_options");
  if (options === undefined) return { stream, includeUsage: false };
  if (!isObject(options)) throw new ParameterFault("stream_options", "stream_options must be an object");
  if (!stream) {
    throw new ParameterFault("stream_options", "stream_options is only allowed when stream is true");
  }
  refuseUnobeyed(options, streamOptions, "stream_options.");
  return { stream, includeUsage: readBoolean(options, "include_usage") ?? false };
}

/** Nothing here constrains what a model may write. */
export function refuseFormats(body: JsonObject): void {
  const format = given(body, "response_format");
  if (format === undefined) return;
  if (isObject(format) && format["type"] === "text") return refuseUnobeyed(format, textFormat, "response_format.");
  throw new ParameterFault(
    "response_format",
    'response_format must be {"type":"text"}: other formats are not supported',
  );
}

/** A request as far as its body decides it. */
export type ParsedGeneration = Pick<GenerationRequest, "spec" | "sequence" | "idempotencyKey">;

export function generationOf(
  body: JsonObject,
  prompt: PromptSpec,
  sampling: SamplingSpec,
  idempotencyKey: string | undefined,
): ParsedGeneration {
  const sequence = readConversation(body);
  checkTurn(sequence, sampling.choices);
  return { spec: { prompt, sampling }, sequence, idempotencyKey };
}
