/** Sends an answer in parts as a stream of events, one for each part. */
import type { ServerResponse } from "node:http";
import type { TokenRecord } from "#shared/contract/generation.js";
import type { Tensor } from "#shared/frame.js";
import { cancelUnlessBegun } from "../../generation/leaving.js";
import { disconnection, isStillThere } from "../../http/disconnect.js";
import { answerRecords } from "../../generation/read-answer.js";
import type { Inference } from "../../admission/inference.js";
import { countReader } from "../../http/opened.js";
import { openSse } from "../../http/sse.js";
import type { AnswerInParts } from "../../formats/kserve/parts.js";
import { errorBody, errorReply, isRefusal } from "../../formats/errors.js";
import type { Reply } from "../../formats/reply.js";

export const eventStream = { "content-type": "text/event-stream; charset=utf-8" };

/**
 * Admits the request and sends an event for each part of its answer. If a generation has no text,
 * the final record makes the only event, so that every text has one. The head waits for the first
 * record, which may be a failure with a status of its own.
 * @param print writes the data of an event with these tensors
 * @returns the refusal if the first record is one; undefined if the answer has been sent
 * @throws InferenceError before any part of the answer
 */
export async function streamParts(
  { request, partOf, empty }: AnswerInParts,
  inference: Inference,
  outgoing: ServerResponse,
  print: (tensors: readonly Tensor[]) => string,
): Promise<Reply | undefined> {
  countReader(outgoing);
  const disconnected = disconnection(outgoing);
  const stream = await inference.generate(request);
  cancelUnlessBegun([stream], [request], () => outgoing.headersSent, disconnected);
  const records = answerRecords(stream, disconnected);
  const first = await records.next().catch(refusalOf);
  if ("status" in first) return first;
  if (first.done === true) return undefined;
  if (!(await isStillThere(outgoing))) {
    await records.return();
    return undefined;
  }
  const sse = openSse(outgoing, { requestId: stream.id, headers: eventStream });
  let isEmpty = true;
  try {
    for (let record: TokenRecord | undefined = first.value; record !== undefined;) {
      const part = (await partOf(record)) ?? (isEmpty && record.final === true ? empty : undefined);
      if (part !== undefined) {
        isEmpty = false;
        if (!(await sse.send({ data: print(part) }))) return undefined;
      }
      record = (await records.next()).value ?? undefined;
    }
  } catch (error) {
    if (!isRefusal(error)) throw error;
    await sse.send({ data: errorBody(error) });
  } finally {
    await records.return();
  }
  sse.end();
  return undefined;
}

function refusalOf(error: unknown): Reply {
  if (!isRefusal(error)) throw error;
  return errorReply(error);
}

/** Puts a whole reply into the form of a stream with one event, and keeps its status. */
export function asEvent(reply: Reply): Reply {
  const body = reply.body.join("");
  return { ...reply, headers: { ...reply.headers, ...eventStream }, body: [`data: ${body}\n\n`] };
}
