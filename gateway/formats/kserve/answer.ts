/**
 * Answers a call of a model in one piece: admits the request that was read from its body, waits for
 * the outcome, and writes the outcome in the client's form.
 */
import { readOutputs } from "#shared/contract/answer-record.js";
import { refusalOf } from "../../admission/inference.js";
import { cancelOnDisconnect, wholeUnderKey } from "../../generation/leaving.js";
import { answerRecords } from "../../generation/read-answer.js";
import { fixedError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { outputTensor } from "#shared/contract/texts.js";
import { errorReply } from "../errors.js";
import { acceptedReply } from "../reply.js";
import { withHeaders, type Reply } from "../reply.js";
import { readTextGeneration, type TextGeneration } from "./text-generation.js";
import type { ModelCall } from "./call.js";
import { classified, refuseClassesLater } from "./classification.js";
import { renderGenerate } from "./generate-response.js";
import { isBinary, renderInfer } from "./infer-response.js";
import type { ReadRequest } from "./read-request.js";
import { tensorRequest } from "./tensor-request.js";
import { wholeText } from "./whole-text.js";

/** @throws InferenceError */
export async function answerInfer(call: ModelCall, read: ReadRequest): Promise<Reply> {
  const { model, inference, printer } = call;
  const { outputs } = read.valid;
  const generation = textGeneration(call, read);
  if (generation !== undefined) {
    const { background } = generation.request;
    if (background) return acceptedReply((await inference.generate(generation.request)).id);
    const { texts, headers } = await wholeText(generation, inference, call.gone());
    return withHeaders(renderInfer(read.id, model, outputs, [textTensor(read, texts)]), headers);
  }
  const request = tensorRequest(call, read);
  if (call.background) refuseClassesLater(outputs);
  if (model.decoupled === true) {
    if (!call.background) throw fixedError("unsupported", "decoupledHttp");
    return acceptedReply((await inference.generate({ ...request, background: true })).id);
  }
  if (call.background) return acceptedReply(await inference.inferLater(request));
  const outcome = await inference.infer(request);
  if (outcome.kind === "error") return errorReply(refusalOf(outcome));
  const { version, step } = outcome;
  const tensors = await classified(outcome.tensors, outputs, model);
  const printed = await printer.printLarge(tensors.filter((tensor) => !isBinary(outputs, tensor)));
  return renderInfer(read.id, { name: model.name, version }, outputs, tensors, step, printed);
}

/** @throws InferenceError */
export async function answerGenerate(call: ModelCall, read: ReadRequest): Promise<Reply> {
  const { model, inference } = call;
  const generation = textGeneration(call, read);
  if (model.decoupled === true) return answerDecoupled(call, read);
  if (generation === undefined) {
    const outcome = await inference.infer(tensorRequest(call, read));
    if (outcome.kind === "error") return errorReply(refusalOf(outcome));
    const { version, tensors } = outcome;
    return jsonText(renderGenerate({ name: model.name, version }, read.id, tensors));
  }
  if (generation.request.background) return acceptedReply((await inference.generate(generation.request)).id);
  const { texts, responses, headers } = await wholeText(generation, inference, call.gone());
  if (generation.stream === true && responses !== 1) return manyResponses();
  return withHeaders(jsonText(renderGenerate(model, read.id, [textTensor(read, texts, [1])])), headers);
}

/** `generate` gives one response, so it refuses the answer of a run that gives another number. */
async function answerDecoupled(call: ModelCall, read: ReadRequest): Promise<Reply> {
  const { model, inference, background } = call;
  const request = { ...tensorRequest(call, read), background };
  if (background) return acceptedReply((await inference.generate(request)).id);
  const gone = call.gone();
  const stream = await inference.generate(wholeUnderKey(request));
  cancelOnDisconnect(stream, request, gone);
  const given: (readonly Tensor[])[] = [];
  for await (const { outputs } of answerRecords(stream, gone)) {
    if (outputs !== undefined) given.push(await classified(readOutputs(outputs), read.valid.outputs, model));
  }
  const [tensors] = given;
  if (tensors === undefined || given.length > 1) return manyResponses();
  return withHeaders(jsonText(renderGenerate(model, read.id, tensors)), { "baton-request-id": stream.id });
}

/**
 * Reads the request for a generation; undefined if the model is no generator.
 * @throws InferenceError
 */
export function textGeneration(call: ModelCall, { valid, textParameters }: ReadRequest): TextGeneration | undefined {
  const [text] = valid.inputs;
  if (call.model.generator === undefined || text === undefined) return undefined;
  return readTextGeneration(call, text, textParameters);
}

/** @param shape of the output; absent: the shape of the input */
export function textTensor({ valid }: ReadRequest, texts: readonly string[], shape?: readonly number[]): Tensor {
  const [input] = valid.inputs;
  const [output] = valid.outputs;
  if (input === undefined || output === undefined) throw new TypeError("a generator has an input and an output");
  return outputTensor(output.name, texts, shape ?? input.shape);
}

function jsonText(text: string): Reply {
  return { status: 200, headers: { "content-type": "application/json" }, body: [text] };
}

/**
 * Refuses several responses, with status 200, because Triton has sent this status before the second
 * response.
 */
function manyResponses(): Reply {
  return errorReply(fixedError("invalid_argument", "manyResponses"), "kserve", 200);
}
