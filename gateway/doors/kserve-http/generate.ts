/**
 * `POST /v2/models/M[/versions/V]/generate` and `generate_stream`, Triton's generate extension: a
 * flat JSON object instead of tensors. For generators, and any other model whose inputs flat JSON
 * can express.
 */
import { hasStreams } from "#shared/contract/announcement.js";
import { fixedError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { textBodyLimit } from "../../formats/limits.js";
import type { Reply } from "../../formats/reply.js";
import { answerGenerate } from "../../formats/kserve/answer.js";
import { partsOf } from "../../formats/kserve/parts.js";
import { callOf, readerOf, type ModelExchange } from "./exchange.js";
import { renderGenerate } from "../../formats/kserve/generate-response.js";
import type { ReadRequest } from "../../formats/kserve/read-request.js";
import { receiveRequest } from "./receive-request.js";
import { asEvent, streamParts } from "./text-answer.js";

/** @throws InferenceError */
export async function generateOverHttp(exchange: ModelExchange): Promise<Reply> {
  const call = callOf(exchange, exchange.incoming.headers, readerOf(exchange.outgoing));
  return answerGenerate(call, await receive(exchange));
}

/**
 * @returns undefined if the answer was a stream
 * @throws InferenceError
 */
export async function generateStreamOverHttp(exchange: ModelExchange): Promise<Reply | undefined> {
  const { model, inference, outgoing } = exchange;
  const call = callOf(exchange, exchange.incoming.headers, readerOf(outgoing));
  const read = await receive(exchange);
  if (hasStreams(model) && call.background) return answerGenerate(call, read);
  const parts = partsOf(call, read, { shape: [1], wants: ({ stream }) => stream !== false });
  if (parts === undefined) return asEvent(await answerGenerate(call, read));
  const print = (tensors: readonly Tensor[]) => renderGenerate(model, read.id, tensors);
  const refusal = await streamParts(parts, inference, outgoing, print);
  return refusal && asEvent(refusal);
}

function receive(exchange: ModelExchange): Promise<ReadRequest> {
  const { incoming, model, others, limits } = exchange;
  const encoding = incoming.headers["content-encoding"]?.trim().toLowerCase() ?? "";
  if (encoding !== "" && encoding !== "identity") {
    incoming.resume();
    throw fixedError("invalid_argument", "contentEncoding");
  }
  const reading = { path: "generate", headerLength: undefined, model, others, limits } as const;
  return receiveRequest(exchange, incoming, { maxBytes: textBodyLimit(limits) }, reading);
}
