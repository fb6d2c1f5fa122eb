/**
 * A KServe request to a generator: text in, and parameters by the names of Triton's vLLM backend. Its clients write numbers and booleans as strings too, and may
 * put all of them into one JSON string, `sampling_parameters`; what stands beside that string goes before what is in it.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import { InferenceError } from "#shared/errors.js";
import { checkTurn, readConversation } from "../generation/conversation.js";
import { usualDeadline } from "../generation/cost.js";
import { ParameterFault } from "../generation/fault.js";
import { textPrompt } from "../generation/prompt.js";
import { given, readBoolean, readString } from "../generation/read-member.js";
import { readSampling } from "../generation/sampling.js";
import type { GenerationRequest } from "../inference.js";
import { prefersAsync } from "../requests/prefer.js";
import { onlyTenant } from "../tenant.js";
import { readIdempotencyKey } from "./idempotency-key.js";
import type { Limits } from "./limits.js";
import { checkPriority, deadline } from "./parse-parameters.js";
import { parseRequestJson } from "./parse-infer.js";

export interface TextGeneration {
  readonly request: GenerationRequest;
  /** What each answer begins with: the prompt, where the client wants it repeated. */
  readonly prefix: string;
  /** Undefined where the client did not say. */
  readonly stream: boolean | undefined;
}

/** Text, even where it reads like something else. */
const keptAsGiven: ReadonlySet<string> = new Set(["stop", "sequence_id", "sampling_parameters"]);

/** @throws InferenceError */
export function readTextGeneration(
  model: ServedModel,
  text: string,
  parameters: JsonObject,
  headers: IncomingHttpHeaders,
  limits: Limits,
): TextGeneration {
  const { generator } = model;
  if (generator === undefined) throw new InferenceError("internal", "internal error");
  const idempotencyKey = readIdempotencyKey(headers);
  const all = plainParameters({ ...samplingParameters(parameters), ...parameters });
  const sampling = readSampling(all, generator, { logprobs: null, maxTokens: null, idempotencyKey });
  const stream = readBoolean(all, "stream");
  const sequence = readConversation(all);
  checkTurn(sequence, sampling.choices);
  checkPriority(given(all, "priority") ?? 0);
  const timeout = given(all, "timeout");
  const request = {
    model,
    tenant: onlyTenant,
    sequence,
    spec: { prompt: textPrompt(text, "text_input"), sampling },
    idempotencyKey,
    deadlineMs: timeout === undefined || timeout === 0 ? usualDeadline(limits) : deadline(timeout, limits),
    background: prefersAsync(headers),
  };
  const repeats = readBoolean(all, "exclude_input_in_output") === false;
  return { request, prefix: repeats ? text : "", stream };
}

/** In a stream the prompt has no place: each event is what came after the one before. */
export function refuseRepeating({ prefix }: TextGeneration): void {
  if (prefix === "") return;
  throw new ParameterFault(
    "exclude_input_in_output",
    "When streaming, `exclude_input_in_output` = False is not allowed.",
  );
}

function samplingParameters(parameters: JsonObject): JsonObject {
  const text = readString(parameters, "sampling_parameters");
  if (text === undefined) return {};
  try {
    return parseRequestJson(Buffer.from(text));
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    throw new ParameterFault("sampling_parameters", "sampling_parameters must be the text of a JSON object");
  }
}

function plainParameters(parameters: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [name, keptAsGiven.has(name) ? value : unquoted(value)]),
  );
}

function unquoted(value: JsonValue): JsonValue {
  if (typeof value !== "string" || value.length > 32) return value;
  if (/^(?:true|false)$/i.test(value)) return value.toLowerCase() === "true";
  if (!/^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(value)) return value;
  const number = Number(value);
  return Number.isInteger(number) && !Number.isSafeInteger(number) && /^-?\d+$/.test(value) ? BigInt(value) : number;
}
