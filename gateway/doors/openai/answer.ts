/** Carries out a parsed request over HTTP: the whole answer, or a stream of chunks. */
import type { ServerResponse } from "node:http";
import type { Inference } from "../../admission/inference.js";
import { cancelAll } from "../../generation/leaving.js";
import { disconnection } from "../../http/disconnect.js";
import { countReader } from "../../http/opened.js";
import { acceptedReply } from "../../formats/reply.js";
import type { Reply } from "../../formats/reply.js";
import type { OpenAiRequest } from "../../formats/openai/request.js";
import { streamAnswer } from "./stream-answer.js";
import { admitAll, answerWhole } from "../../formats/openai/whole-answer.js";

/**
 * @returns the reply; undefined if the answer was a stream, already sent
 * @throws InferenceError before any part of the answer
 */
export async function answer(
  request: OpenAiRequest,
  inference: Inference,
  outgoing: ServerResponse,
): Promise<Reply | undefined> {
  const { generations, delivery } = request;
  const disconnected = disconnection(outgoing);
  if (!delivery.stream) return answerWhole(request, inference, disconnected);
  const isBackground = generations[0]?.background === true;
  if (!isBackground) countReader(outgoing);
  const streams = await admitAll(generations, inference);
  const [first] = streams;
  if (first !== undefined && isBackground) return acceptedReply(first.id);
  try {
    await streamAnswer({ ...request, streams }, outgoing, disconnected);
    return undefined;
  } catch (error) {
    if (streams.length > 1) cancelAll(streams, generations);
    throw error;
  }
}
