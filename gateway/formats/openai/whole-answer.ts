/** Carries out a parsed request in one piece: admits its generations, all or none, and waits. */
import { collectAnswer } from "../../generation/collect.js";
import { cancelAll, cancelOnDisconnect, wholeUnderKey } from "../../generation/leaving.js";
import { answerRecords } from "../../generation/read-answer.js";
import type { GenerationRequest, Inference } from "../../admission/inference.js";
import type { OpenStream } from "../../stream/open-stream.js";
import { acceptedReply } from "../reply.js";
import { jsonReply, withHeaders, type Reply } from "../reply.js";
import { answerHead, publicIds, totalUsage, type AdmittedRequest, type OpenAiRequest } from "./request.js";

/**
 * @param gone aborts when the client disconnects
 * @throws InferenceError
 */
export async function answerWhole(request: OpenAiRequest, inference: Inference, gone: AbortSignal): Promise<Reply> {
  const { generations } = request;
  const streams = await admitAll(generations.map(wholeUnderKey), inference);
  const [first] = streams;
  if (first !== undefined && generations[0]?.background === true) return acceptedReply(first.id);
  try {
    return await wholeAnswer({ ...request, streams }, gone);
  } catch (error) {
    // The failure of one prompt fails the whole answer, so the tokens of the other prompts have no
    // reader.
    if (streams.length > 1) cancelAll(streams, generations);
    throw error;
  }
}

/** @throws InferenceError the first refusal, after cancelling the admitted generations */
export async function admitAll(generations: readonly GenerationRequest[], inference: Inference): Promise<OpenStream[]> {
  const admissions = await Promise.allSettled(generations.map((generation) => inference.generate(generation)));
  const streams = admissions.flatMap((admission) => (admission.status === "fulfilled" ? [admission.value] : []));
  const refused = admissions.find((admission) => admission.status === "rejected");
  if (refused === undefined) return streams;
  cancelAll(streams, generations);
  throw refused.reason;
}

/** @throws InferenceError if a generation fails */
async function wholeAnswer(request: AdmittedRequest, disconnected: AbortSignal): Promise<Reply> {
  const { renderer, choices, generations, streams } = request;
  const answers = await Promise.all(
    streams.map((stream, prompt) => {
      cancelOnDisconnect(stream, generations[prompt], disconnected);
      return collectAnswer(answerRecords(stream, disconnected), choices);
    }),
  );
  const reply = jsonReply({
    ...answerHead(request, renderer.wholeObject),
    choices: answers.flatMap((answer, prompt) =>
      answer.choices.map((choice, index) => renderer.renderChoice(choice, prompt * choices + index, prompt)),
    ),
    usage: totalUsage(answers.map(({ usage }) => usage)),
  });
  return withHeaders(reply, { "baton-request-id": publicIds(request) });
}
