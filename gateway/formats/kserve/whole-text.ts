/** The whole text of a generator, for an answer in one piece. */
import type { TokenRecord } from "#shared/contract/generation.js";
import type { Inference } from "../../admission/inference.js";
import { collectAnswer } from "../../generation/collect.js";
import { cancelOnDisconnect, wholeUnderKey } from "../../generation/leaving.js";
import { answerRecords } from "../../generation/read-answer.js";
import type { TextGeneration } from "./text-generation.js";

export interface WholeText {
  /** The text of each choice. */
  readonly texts: readonly string[];
  /** How many events a stream of the same answer would have had. */
  readonly responses: number;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Admits a generation and waits for its whole text. A client that disconnects cancels the
 * generation.
 * @param gone aborts when the client disconnects
 * @throws InferenceError
 */
export async function wholeText(
  { request, prefix }: TextGeneration,
  inference: Inference,
  gone: AbortSignal,
): Promise<WholeText> {
  const stream = await inference.generate(wholeUnderKey(request));
  cancelOnDisconnect(stream, request, gone);
  let responses = 0;
  const counted = async function* (): AsyncGenerator<TokenRecord, void> {
    for await (const record of answerRecords(stream, gone)) {
      if (record.choices.some(({ text }) => text !== "")) responses++;
      yield record;
    }
  };
  const { choices } = await collectAnswer(counted(), request.spec.sampling.choices);
  return {
    texts: choices.map(({ text }) => prefix + text),
    responses: Math.max(responses, 1),
    headers: { "baton-request-id": stream.id },
  };
}
