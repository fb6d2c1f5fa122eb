/**
 * `POST /v2/models/M[/versions/V]/infer`: receives and reads the request, and answers in one piece,
 * or for a generator with a stream of events.
 */
import { compress } from "../../http/compress.js";
import { acceptsByName } from "../../http/headers.js";
import { textBodyLimit } from "../../formats/limits.js";
import type { Reply } from "../../formats/reply.js";
import { refuseRepeating } from "../../formats/kserve/text-generation.js";
import { answerInfer, textGeneration, textTensor } from "../../formats/kserve/answer.js";
import { callOf, type ModelExchange } from "./exchange.js";
import { renderInfer } from "../../formats/kserve/infer-response.js";
import { receiveRequest } from "./receive-request.js";
import { streamText } from "./text-answer.js";

/**
 * For events a client has to give the parameter `stream` and to accept events, because Triton's own
 * clients read one response.
 * @returns undefined if the answer was a stream
 * @throws InferenceError
 */
export async function inferOverHttp(exchange: ModelExchange): Promise<Reply | undefined> {
  const { incoming, outgoing, model, others, inference, limits } = exchange;
  const { headers } = incoming;
  const call = callOf(exchange);
  const headerLength = headers["inference-header-content-length"] as string | undefined;
  const jsonBytes = headerLength === undefined ? undefined : Number(headerLength);
  const terms = { maxBytes: longestBody(exchange, jsonBytes), jsonBytes, encoding: headers["content-encoding"] };
  const reading = { path: "infer", headerLength, model, others, limits } as const;
  const read = await receiveRequest(exchange, incoming, terms, reading);
  if (model.generator !== undefined && !call.background && acceptsByName(headers, "text/event-stream")) {
    const generation = textGeneration(call, read);
    if (generation?.stream === true) {
      refuseRepeating(generation);
      // An event cannot hold bytes, so all outputs are JSON.
      return streamText(generation, inference, outgoing, (texts) =>
        renderInfer(read.id, model, [], [textTensor(read, texts)]).body.join(""),
      );
    }
  }
  const reply = await answerInfer(call, read);
  return reply.status === 200 ? compress(reply, headers["accept-encoding"]) : reply;
}

function longestBody({ model, limits }: ModelExchange, jsonBytes: number | undefined): number {
  if (model.generator !== undefined) return textBodyLimit(limits);
  return jsonBytes === undefined ? limits.jsonBytes : limits.binaryBytes;
}
