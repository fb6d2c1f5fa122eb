/**
 * Sends the answer of a generator as a stream of the text that each iteration of the generator
 * added.
 */
import type { ServerResponse } from "node:http";
import type { TokenRecord } from "#shared/contract/generation.js";
import { cancelUnlessBegun } from "../../generation/leaving.js";
import { disconnection, isStillThere } from "../../http/disconnect.js";
import { answerRecords } from "../../generation/read-answer.js";
import type { Inference } from "../../admission/inference.js";
import { countReader } from "../../http/opened.js";
import { openSse } from "../../http/sse.js";
import type { TextGeneration } from "../../formats/kserve/text-generation.js";
import { errorBody, errorReply, isRefusal } from "../../formats/errors.js";
import type { Reply } from "../../formats/reply.js";

export const eventStream = { "content-type": "text/event-stream; charset=utf-8" };

/**
 * Admits a generation and sends an event for each record with text. If no record has text, the
 * final record makes the only event, so that every answer has one. The head waits for the first
 * record, which may be a failure with a status of its own.
 * @param print writes the data of an event with these texts, one for each choice
 * @returns the refusal if the first record is one; undefined if the answer has been sent
 * @throws InferenceError before any part of the answer
 */
export async function streamText(
  { request }: TextGeneration,
  inference: Inference,
  outgoing: ServerResponse,
  print: (texts: readonly string[]) => string,
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
      const texts = textsOf(record, request.spec.sampling.choices);
      if (texts.some((text) => text !== "") || (isEmpty && record.final === true)) {
        isEmpty = false;
        if (!(await sse.send({ data: print(texts) }))) return undefined;
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

function textsOf(record: TokenRecord, choices: number): string[] {
  const texts = Array.from({ length: choices }, () => "");
  for (const { index, text } of record.choices) texts[index] = text;
  return texts;
}

/** Puts a whole reply into the form of a stream with one event, and keeps its status. */
export function asEvent(reply: Reply): Reply {
  const body = reply.body.join("");
  return { ...reply, headers: { ...reply.headers, ...eventStream }, body: [`data: ${body}\n\n`] };
}
