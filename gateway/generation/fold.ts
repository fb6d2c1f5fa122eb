/** Records put together: what a client that does not stream is given. */
import type { ChoiceDelta, TokenRecord } from "#shared/contract/generation.js";
import { InferenceError } from "#shared/errors.js";

type TokenLogprobs = NonNullable<ChoiceDelta["logprobs"]>;

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
  /** By index. */
  readonly choices: readonly WholeChoice[];
  readonly usage: Usage;
}

interface Growing {
  text: string;
  logprobs: TokenLogprobs | undefined;
  finishReason: "stop" | "length" | undefined;
}

/** @throws InferenceError `cancelled` where the records end before the final one: nobody reads on */
export async function foldRecords(records: AsyncIterable<TokenRecord>, choices: number): Promise<WholeAnswer> {
  const growing = Array.from({ length: choices }, (): Growing => ({
    text: "",
    logprobs: undefined,
    finishReason: undefined,
  }));
  for await (const record of records) {
    for (const delta of record.choices) addDelta(growing, delta);
    if (record.final !== true) continue;
    return {
      choices: growing.map(({ text, logprobs, finishReason = "stop" }) => ({ text, logprobs, finishReason })),
      usage: record.usage ?? { prompt_tokens: 0, completion_tokens: 0 },
    };
  }
  throw new InferenceError("cancelled", "the client left before the answer was complete");
}

function addDelta(growing: readonly Growing[], delta: ChoiceDelta): void {
  const choice = growing[delta.index];
  if (choice === undefined) throw new RangeError(`a record has choice ${delta.index} of ${growing.length}`);
  choice.text += delta.text;
  choice.finishReason = delta.finish_reason ?? choice.finishReason;
  if (delta.logprobs === undefined) return;
  if (choice.logprobs === undefined) choice.logprobs = [...delta.logprobs];
  else choice.logprobs.push(...delta.logprobs);
}
