/**
 * An answer in parts: the text of a generator as it grows, or the answers of a decoupled tensor
 * model, one for each of its records that has one.
 */
import { readOutputs } from "#shared/contract/answer-record.js";
import type { TokenRecord } from "#shared/contract/generation.js";
import type { Tensor } from "#shared/frame.js";
import type { StreamingRequest } from "../../admission/inference.js";
import { textGeneration, textTensor } from "./answer.js";
import type { ModelCall } from "./call.js";
import { classified } from "./classification.js";
import type { ReadRequest } from "./read-request.js";
import { tensorRequest } from "./tensor-request.js";
import { refuseRepeating, type TextGeneration } from "./text-generation.js";

export interface AnswerInParts {
  readonly request: StreamingRequest;
  /** @returns undefined for a record without a part of the answer */
  readonly partOf: (record: TokenRecord) => Promise<readonly Tensor[] | undefined>;
  /** The only part of an answer whose records have none; undefined if it then has no part. */
  readonly empty: readonly Tensor[] | undefined;
}

/** How an answer becomes parts. */
export interface PartTerms {
  /** The shape of the text in a part; absent: the shape of the input. */
  readonly shape?: readonly number[];
  /** Whether the client of a generation wants parts; absent: yes. */
  readonly wants?: (generation: TextGeneration) => boolean;
}

/**
 * @returns undefined if the answer is in one piece
 * @throws InferenceError
 */
export function partsOf(
  call: ModelCall,
  read: ReadRequest,
  { shape, wants = () => true }: PartTerms = {},
): AnswerInParts | undefined {
  const generation = textGeneration(call, read);
  if (generation === undefined) return tensorsInParts(call, read);
  if (!wants(generation)) return undefined;
  refuseRepeating(generation);
  return textInParts(generation, read, shape);
}

function textInParts({ request }: TextGeneration, read: ReadRequest, shape?: readonly number[]): AnswerInParts {
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

function tensorsInParts(call: ModelCall, read: ReadRequest): AnswerInParts | undefined {
  const { model } = call;
  if (model.decoupled !== true) return undefined;
  return {
    request: { ...tensorRequest(call, read), background: call.background },
    partOf: async ({ outputs }) => outputs && classified(readOutputs(outputs), read.valid.outputs, model),
    empty: undefined,
  };
}
