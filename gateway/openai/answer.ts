/** From requests to an answer: admitted all or none, then given whole or in chunks. */
import type { ServerResponse } from "node:http";
import { foldRecords } from "../generation/fold.js";
import { cancelAll, cancelWhenGone, whenGone, wholeUnderKey } from "../generation/gone.js";
import { answerRecords } from "../generation/records.js";
import type { Generate, GenerationRequest, OpenStream } from "../inference.js";
import { acceptedReply } from "../requests/prefer.js";
import { jsonReply, withHeaders, type Reply } from "../v2/reply.js";
import { headOf, publicIds, totalUsage, type AdmittedJob, type Job } from "./job.js";
import { streamAnswer } from "./stream-answer.js";

/** Undefined where the answer was a stream. @throws InferenceError before anything was answered */
export async function answer(job: Job, generate: Generate, outgoing: ServerResponse): Promise<Reply | undefined> {
  const { requests, delivery } = job;
  const gone = whenGone(outgoing);
  const streams = await admitAll(delivery.stream ? requests : requests.map(wholeUnderKey), generate);
  const [first] = streams;
  if (first !== undefined && requests[0]?.background === true) return acceptedReply(first.id);
  try {
    if (!delivery.stream) return await wholeAnswer({ ...job, streams }, gone);
    await streamAnswer({ ...job, streams }, outgoing, gone);
    return undefined;
  } catch (error) {
    // One prompt's failure is the whole answer's: nobody gets what the others make.
    if (streams.length > 1) cancelAll(streams, requests);
    throw error;
  }
}

async function admitAll(requests: readonly GenerationRequest[], generate: Generate): Promise<OpenStream[]> {
  const admissions = await Promise.allSettled(requests.map((request) => generate(request)));
  const streams = admissions.flatMap((admission) => (admission.status === "fulfilled" ? [admission.value] : []));
  const refused = admissions.find((admission) => admission.status === "rejected");
  if (refused === undefined) return streams;
  cancelAll(streams, requests);
  throw refused.reason;
}

async function wholeAnswer(job: AdmittedJob, gone: AbortSignal): Promise<Reply> {
  const { wording, choices, requests, streams } = job;
  const answers = await Promise.all(
    streams.map((stream, prompt) => {
      cancelWhenGone(stream, requests[prompt], gone);
      return foldRecords(answerRecords(stream, gone), choices);
    }),
  );
  const reply = jsonReply({
    ...headOf(job, wording.whole),
    choices: answers.flatMap((answer, prompt) =>
      answer.choices.map((choice, index) => wording.wholeChoice(choice, prompt * choices + index, prompt)),
    ),
    usage: totalUsage(answers.map(({ usage }) => usage)),
  });
  return withHeaders(reply, { "baton-request-id": publicIds(job) });
}
