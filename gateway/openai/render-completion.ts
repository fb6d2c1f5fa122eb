/** Answers in the words of `/v1/completions`. */
import type { ChoiceDelta } from "#shared/contract/generation.js";
import type { Wording } from "./wording.js";
import { completionLogprobs, textLength } from "./completion-logprobs.js";

/**
 * @param choices of each prompt
 * @param echoes what each prompt's choices begin with
 */
export function completionWording(choices: number, echoes: readonly string[]): Wording {
  /** Characters told of each choice, which is where its next token begins; undefined before its first chunk. */
  const told: (number | undefined)[] = [];

  const chunkOf = (delta: ChoiceDelta, prompt: number): object[] => {
    const index = prompt * choices + delta.index;
    const text = told[index] === undefined ? (echoes[prompt] ?? "") + delta.text : delta.text;
    if (text === "" && delta.finish_reason === undefined && delta.logprobs === undefined) return [];
    const logprobs = delta.logprobs === undefined ? null : completionLogprobs(delta.logprobs, told[index] ?? 0);
    told[index] = (told[index] ?? 0) + (delta.logprobs === undefined ? 0 : textLength(delta.logprobs));
    return [{ index, text, logprobs, finish_reason: delta.finish_reason ?? null }];
  };

  return {
    idPrefix: "cmpl-",
    whole: "text_completion",
    chunk: "text_completion",
    wholeChoice: ({ text, logprobs, finishReason }, index, prompt) => ({
      index,
      text: (echoes[prompt] ?? "") + text,
      logprobs: logprobs === undefined ? null : completionLogprobs(logprobs, 0),
      finish_reason: finishReason,
    }),
    chunkChoices: (record, prompt) => record.choices.flatMap((delta) => chunkOf(delta, prompt)),
    plainChoice: (text, prompt) => {
      const index = prompt * choices;
      if (told[index] === undefined) return undefined;
      return text === '""' ? "" : `{"index":${index},"text":${text},"logprobs":null,"finish_reason":null}`;
    },
  };
}
