/**
 * An answer in parts: the text of a generator as it grows, or the answers of a decoupled tensor
 * model, one for each of its records that has one.
 */
import { readOutputs } from "#shared/contract/answer-record.js";
import type { TokenRecord } from "#shared/contract/generation.js";
import type { Tensor } from "#shared/frame.js";
import type { DecoupledRequest, StreamingRequest } from "../../admission/inference.js";
import { textTensor } from "./answer.js";
import type { ModelCall } from "./call.js";
import { classified } from "./classification.js";
import type { ReadRequest } from "./read-request.js";
import { tensorRequest } from "./tensor-request.js";
import type { TextGeneration } from "./text-generation.js";

export interface AnswerInParts {
  readonly request: StreamingRequest;
  /** @returns undefined for a record without a part of the answer */
  partOf(record: TokenRecord): Promise<readonly Tensor[] | undefined>;
  /** The only part of an answer whose records have none; undefined if it then has no part. */
  readonly empty: readonly Tensor[] | undefined;
}

/** @param shape of the text in a part; absent: the shape of the input */
export function textInParts({ request }: TextGeneration, read: ReadRequest, shape?: readonly number[]): AnswerInParts {
  const { choices } = request.spec.sampling;
  const none = () => Array.from({ length: choices }, () => "");
  return {
    request,
    partOf: (record) => {
      const texts = none();
      for (const { index, text } of record.choices) texts[index] = text;
      return Promise.resolve(texts.some((text) => text !== "") ? [textTensor(read, texts, shape)] : undefined);
    },
    empty: [textTensor(read, none(), shape)],
  };
}

/**
 * @returns undefined if the model answers each request once
 * @throws InferenceError
 */
export function tensorsInParts(call: ModelCall, read: ReadRequest): AnswerInParts | undefined {
  const { model } = call;
  if (model.decoupled !== true) return undefined;
  return {
    request: decoupledRequest(call, read),
    partOf: async ({ outputs }) => outputs && classified(readOutputs(outputs), read.valid.outputs, model),
    empty: undefined,
  };
}

/** @throws InferenceError */
export function decoupledRequest(call: ModelCall, read: ReadRequest): DecoupledRequest {
  return { ...tensorRequest(call, read), background: call.background };
}
