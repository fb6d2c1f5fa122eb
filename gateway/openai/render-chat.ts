/** Answers in the words of `/v1/chat/completions`. */
import type { ChoiceDelta, TokenChance, TokenRecord } from "#shared/contract/generation.js";
import type { Wording } from "./wording.js";

/** @param choices how many there are */
export function chatWording(choices: number): Wording {
  let begun = false;

  /** A stream begins by saying who speaks. */
  const roles = (): object[] =>
    Array.from({ length: choices }, (_, index) => ({
      index,
      delta: { role: "assistant", content: "", refusal: null },
      logprobs: null,
      finish_reason: null,
    }));

  return {
    idPrefix: "chatcmpl-",
    whole: "chat.completion",
    chunk: "chat.completion.chunk",
    wholeChoice: ({ text, logprobs, finishReason }, index) => ({
      index,
      message: { role: "assistant", content: text, refusal: null },
      logprobs: logprobs === undefined ? null : chatLogprobs(logprobs),
      finish_reason: finishReason,
    }),
    chunkChoices: (record: TokenRecord) => {
      const first = begun ? [] : roles();
      begun = true;
      return [...first, ...record.choices.flatMap(chunkOf)];
    },
    plainChoice: (text) => {
      if (!begun) return undefined;
      return text === '""' ? "" : `{"index":0,"delta":{"content":${text}},"logprobs":null,"finish_reason":null}`;
    },
  };
}

function chunkOf({ index, text, logprobs, finish_reason }: ChoiceDelta): object[] {
  if (text === "" && finish_reason === undefined && logprobs === undefined) return [];
  return [
    {
      index,
      // A last chunk without text says nothing; one that only tells chances still has to be read as text.
      delta: text === "" && finish_reason !== undefined ? {} : { content: text },
      logprobs: logprobs === undefined ? null : chatLogprobs(logprobs),
      finish_reason: finish_reason ?? null,
    },
  ];
}

function chatLogprobs(tokens: NonNullable<ChoiceDelta["logprobs"]>): object {
  return { content: tokens.map((token) => ({ ...chance(token), top_logprobs: token.top.map(chance) })), refusal: null };
}

function chance({ token, logprob, bytes }: TokenChance): object {
  return { token, logprob, bytes };
}
