/** A generator's answer to a KServe request, whole or as a stream of what each iteration added. */
import type { ServerResponse } from "node:http";
import type { TokenRecord } from "#shared/contract/generation.js";
import { InferenceError } from "#shared/errors.js";
import { foldRecords } from "../generation/fold.js";
import { cancelUnlessBegun, cancelWhenGone, whenGone, wholeUnderKey } from "../generation/gone.js";
import { answerRecords } from "../generation/records.js";
import type { Generate } from "../inference.js";
import { openSse } from "../stream/sse.js";
import type { TextGeneration } from "./generation-parameters.js";
import { errorText, refusalReply, type Reply } from "./reply.js";

export interface WholeText {
  /** One for each choice. */
  readonly texts: readonly string[];
  /** How many events a stream of it would have had: what a streaming model answers with. */
  readonly responses: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** @throws InferenceError */
export async function wholeText(
  { request, prefix }: TextGeneration,
  generate: Generate,
  outgoing: ServerResponse,
): Promise<WholeText> {
  const gone = whenGone(outgoing);
  const stream = await generate(wholeUnderKey(request));
  cancelWhenGone(stream, request, gone);
  let responses = 0;
  const counted = async function* (): AsyncGenerator<TokenRecord, void> {
    for await (const record of answerRecords(stream, gone)) {
      if (record.choices.some(({ text }) => text !== "")) responses++;
      yield record;
    }
  };
  const { choices } = await foldRecords(counted(), request.spec.sampling.choices);
  return {
    texts: choices.map(({ text }) => prefix + text),
    responses: Math.max(responses, 1),
    headers: { "baton-request-id": stream.id },
  };
}

export const eventStream = { "content-type": "text/event-stream; charset=utf-8" };

/**
 * One event for each record that has text; where none has, the final one makes the only event, so
 * that every answer has one. The head waits for the first record, which may be a failure with a
 * status of its own.
 * @param print the data of an event with these texts, one for each choice
 * @returns the refusal where the first record is one; undefined where it has answered by itself
 * @throws InferenceError before anything was answered
 */
export async function streamText(
  { request }: TextGeneration,
  generate: Generate,
  outgoing: ServerResponse,
  print: (texts: readonly string[]) => string,
): Promise<Reply | undefined> {
  const gone = whenGone(outgoing);
  const stream = await generate(request);
  cancelUnlessBegun([stream], [request], outgoing, gone);
  const records = answerRecords(stream, gone);
  const first = await records.next().catch(refusalOf);
  if ("status" in first) return first;
  if (first.done === true) return undefined;
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
    if (!(error instanceof InferenceError)) throw error;
    await sse.send({ data: errorText(error.code, error.message) });
  } finally {
    await records.return();
  }
  sse.end();
  return undefined;
}

function refusalOf(error: unknown): Reply {
  const refusal = refusalReply(error);
  if (refusal === undefined) throw error;
  return refusal;
}

function textsOf(record: TokenRecord, choices: number): string[] {
  const texts = Array.from({ length: choices }, () => "");
  for (const { index, text } of record.choices) texts[index] = text;
  return texts;
}

/** A reply that has its status, in the form of a stream. */
export function asEvent(reply: Reply): Reply {
  const body = reply.body.join("");
  return { ...reply, headers: { ...reply.headers, ...eventStream }, body: [`data: ${body}\n\n`] };
}
