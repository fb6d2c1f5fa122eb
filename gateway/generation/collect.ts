/** Puts the records of a generation together to a whole answer, for clients that do not stream. */
import type { ChoiceDelta, TokenRecord } from "#shared/contract/generation.js";
import { fixedError } from "#shared/errors.js";

type TokenLogprobs = NonNullable<ChoiceDelta["logprobs"]>;

/** Token counts of one generation, as OpenAI names them. */
export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
}

export interface WholeChoice {
  readonly text: string;
  readonly logprobs: TokenLogprobs | undefined;
  readonly finishReason: "stop" | "length";
}

export interface WholeAnswer {
  /** In the order of their indexes. */
  readonly choices: readonly WholeChoice[];
  readonly usage: Usage;
}

/** A choice whose records are still coming. */
interface PartialChoice {
  text: string;
  /** Undefined until a record has some; always undefined if the client asked for none. */
  logprobs: TokenLogprobs | undefined;
  /** Undefined until the choice has ended. */
  finishReason: "stop" | "length" | undefined;
}

/**
 * @param choices number of choices that the generation makes
 * @throws InferenceError `cancelled` if the records end before the final one, which happens only
 * after the client has disconnected
 */
export async function collectAnswer(records: AsyncIterable<TokenRecord>, choices: number): Promise<WholeAnswer> {
  const partials = Array.from({ length: choices }, (): PartialChoice => ({
    text: "",
    logprobs: undefined,
    finishReason: undefined,
  }));
  for await (const record of records) {
    for (const delta of record.choices) addDelta(partials, delta);
    if (record.final !== true) continue;
    return {
      choices: partials.map(({ text, logprobs, finishReason = "stop" }) => ({ text, logprobs, finishReason })),
      usage: record.usage ?? { prompt_tokens: 0, completion_tokens: 0 },
    };
  }
  throw fixedError("cancelled", "clientLeft");
}

function addDelta(partials: readonly PartialChoice[], delta: ChoiceDelta): void {
  const choice = partials[delta.index];
  if (choice === undefined) throw new RangeError(`a record has choice ${delta.index} of ${partials.length}`);
  choice.text += delta.text;
  choice.finishReason = delta.finish_reason ?? choice.finishReason;
  if (delta.logprobs === undefined) return;
  if (choice.logprobs === undefined) choice.logprobs = [...delta.logprobs];
  else choice.logprobs.push(...delta.logprobs);
}
