/** ModelInfer: reads the request, and answers with raw tensors. */
import { fixedError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { refusalOf, type Inference } from "../../admission/inference.js";
import { checkIdempotencyKey } from "../../admission/request-terms.js";
import type { Fleet } from "../../fleet/watch.js";
import { textTensor, textGeneration } from "../../formats/kserve/answer.js";
import { classified } from "../../formats/kserve/classification.js";
import type { ModelCall } from "../../formats/kserve/call.js";
import { parseGrpcInfer, streamTerms, type StreamTerms } from "../../formats/kserve/grpc/infer-request.js";
import { readInfer } from "../../formats/kserve/grpc/read-infer.js";
import { writeInfer, type InferAnswer } from "../../formats/kserve/grpc/write-infer.js";
import { compareInfer, type ReadRequest } from "../../formats/kserve/read-request.js";
import { tensorRequest } from "../../formats/kserve/tensor-request.js";
import type { TensorPrinter } from "../../formats/kserve/tensor-printer.js";
import { wholeText } from "../../formats/kserve/whole-text.js";
import { bodyTooLarge, textBodyLimit, type Limits } from "../../formats/limits.js";
import type { Exchange } from "./exchange.js";
import type { Leaving } from "./leaving.js";

export interface InferParts {
  readonly fleet: Fleet;
  readonly inference: Inference;
  readonly printer: TensorPrinter;
  readonly limits: Limits;
}

/** A request that was read and compared with its model. */
export interface ReadCall {
  readonly call: ModelCall;
  readonly read: ReadRequest;
  readonly terms: StreamTerms;
}

/**
 * Answers a ModelInferRequest with the bytes of a ModelInferResponse.
 * @throws InferenceError
 */
export async function modelInfer(
  message: Buffer,
  exchange: Exchange,
  parts: InferParts,
  client: Leaving,
): Promise<Buffer> {
  const key = exchange.header("idempotency-key");
  let request: ReadCall;
  try {
    request = readCall(message, exchange, parts, client, key === undefined ? undefined : checkIdempotencyKey(key));
  } finally {
    exchange.arrivals?.taken();
  }
  return writeInfer(await answerWhole(request, exchange, client)).finish();
}

/**
 * Reads a message, and compares it with its model.
 * @param key of the request, unless its parameters have one
 * @throws InferenceError
 */
export function readCall(
  message: Buffer,
  exchange: Exchange,
  { fleet, inference, printer, limits }: InferParts,
  client: Leaving,
  key?: string,
): ReadCall {
  const given = readInfer(message);
  exchange.messageId = given.id;
  const version = given.version === "" ? undefined : given.version;
  const directory = exchange.models(fleet.directory);
  const model = directory.find(given.model, version);
  if (model.generator !== undefined && message.length > textBodyLimit(limits)) {
    throw bodyTooLarge(textBodyLimit(limits));
  }
  const terms = streamTerms(given.parameters);
  const others = directory.others(model);
  const read = compareInfer(parseGrpcInfer(given, model, limits), { model, others });
  const call: ModelCall = {
    tenant: exchange.caller.tenant,
    budget: exchange.budget(),
    model,
    version,
    others,
    inference: exchange.calls(inference, model.name),
    printer,
    limits,
    idempotencyKey: terms.idempotencyKey ?? key,
    background: false,
    gone: () => client.signal,
    client,
  };
  return { call, read, terms };
}

/**
 * Answers in one piece.
 * @throws InferenceError
 */
async function answerWhole({ call, read }: ReadCall, exchange: Exchange, client: Leaving): Promise<InferAnswer> {
  const { model, inference } = call;
  const generation = textGeneration(call, read);
  if (generation !== undefined) {
    const { texts, headers } = await wholeText(generation, inference, client.signal);
    exchange.answeredAs = headers["baton-request-id"];
    return { model: model.name, version: model.version, id: read.id, tensors: [textTensor(read, texts)] };
  }
  if (model.decoupled === true) throw fixedError("unsupported", "decoupledGrpc");
  const outcome = await inference.infer(tensorRequest(call, read));
  exchange.answeredAs = outcome.id;
  if (outcome.kind === "error") throw refusalOf(outcome);
  return tensorAnswer(call, read, outcome);
}

/** @param outcome of a tensor model */
export async function tensorAnswer(
  { model }: ModelCall,
  { id, valid }: ReadRequest,
  { version, tensors: given, step }: { version: string; tensors: readonly Tensor[]; step?: number | undefined },
): Promise<InferAnswer> {
  const parameters = step === undefined ? undefined : { sequence_step: step };
  const tensors = await classified(given, valid.outputs, model);
  return { model: model.name, version, id, tensors, ...(parameters && { parameters }) };
}
