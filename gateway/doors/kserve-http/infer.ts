/**
 * `POST /v2/models/M[/versions/V]/infer`: reads the request, and answers in one piece, or for a
 * generator with a stream of events.
 */
import type { IncomingHttpHeaders } from "node:http";
import { hasStreams } from "#shared/contract/announcement.js";
import type { Tensor } from "#shared/frame.js";
import type { Client } from "../../admission/inference.js";
import { jsonBytesOf } from "../../http/bodies.js";
import { compress } from "../../http/compress.js";
import { acceptsByName } from "../../http/headers.js";
import { textBodyLimit } from "../../formats/limits.js";
import { turnOfItsOwn } from "../../formats/own-turn.js";
import type { Reply } from "../../formats/reply.js";
import type { ModelCall } from "../../formats/kserve/call.js";
import { answerInfer } from "../../formats/kserve/answer.js";
import { partsOf } from "../../formats/kserve/parts.js";
import { callOf, readerOf, type CallTerms, type ModelExchange } from "./exchange.js";
import { renderInfer } from "../../formats/kserve/infer-response.js";
import { readRequest, type ReadRequest } from "../../formats/kserve/read-request.js";
import { receiveRequest } from "./receive-request.js";
import { streamParts } from "./text-answer.js";

/**
 * For events a client has to accept events, and of a generator to give the parameter `stream`,
 * because Triton's own clients read one response.
 * @returns undefined if the answer was a stream
 * @throws InferenceError
 */
export async function inferOverHttp(exchange: ModelExchange): Promise<Reply | undefined> {
  const { incoming, outgoing, model, inference } = exchange;
  const { headers } = incoming;
  const call = callOf(exchange, headers, readerOf(outgoing));
  const form = inferForm(exchange, headers);
  const terms = { ...form, encoding: headers["content-encoding"] };
  const read = await receiveRequest(exchange, incoming, terms, form.reading);
  if (hasStreams(model) && !call.background && acceptsByName(headers, "text/event-stream")) {
    const parts = partsOf(call, read, { wants: ({ stream }) => stream === true });
    // An event cannot hold bytes, so all outputs are JSON.
    const print = (tensors: readonly Tensor[]) => renderInfer(read.id, model, [], tensors).body.join("");
    if (parts !== undefined) return streamParts(parts, inference, outgoing, print);
  }
  return answerOf(call, read, headers);
}

/**
 * Answers a request to a tensor model whose body has come as it is. Reads the body in this thread,
 * so it must be small.
 * @param form from `inferForm`
 * @throws InferenceError
 */
export async function inferWhole(
  terms: CallTerms,
  headers: IncomingHttpHeaders,
  { reading, jsonBytes }: ReturnType<typeof inferForm>,
  body: Buffer,
  client: Client,
): Promise<Reply> {
  const call = callOf(terms, headers, { gone: isNeverAsked, client });
  await turnOfItsOwn(jsonBytesOf(body, { jsonBytes }), body.length);
  return answerOf(call, readRequest(body, reading), headers);
}

/** Only generators ask whether their client has gone. */
function isNeverAsked(): never {
  throw new TypeError("a tensor model does not ask whether its client has gone");
}

/** What the headers say about a body, and how many bytes it may have. */
export function inferForm(
  { model, others, limits }: Pick<CallTerms, "model" | "others" | "limits">,
  headers: IncomingHttpHeaders,
) {
  const headerLength = headers["inference-header-content-length"] as string | undefined;
  const jsonBytes = headerLength === undefined ? undefined : Number(headerLength);
  const tensorBytes = jsonBytes === undefined ? limits.jsonBytes : limits.binaryBytes;
  const maxBytes = model.generator === undefined ? tensorBytes : textBodyLimit(limits);
  return { maxBytes, jsonBytes, reading: { path: "infer", headerLength, model, others, limits } } as const;
}

async function answerOf(call: ModelCall, read: ReadRequest, headers: IncomingHttpHeaders): Promise<Reply> {
  const reply = await answerInfer(call, read);
  return reply.status === 200 ? compress(reply, headers["accept-encoding"]) : reply;
}
