/** Log probabilities as `/v1/completions` tells them: a list of each thing instead of a list of tokens. */
import type { ChoiceDelta, TokenChance } from "#shared/contract/generation.js";

type TokenLogprobs = NonNullable<ChoiceDelta["logprobs"]>;

/** @param from where in its choice's text the first token begins */
export function completionLogprobs(tokens: TokenLogprobs, from: number): object {
  const offsets: number[] = [];
  let offset = from;
  for (const token of tokens) {
    offsets.push(offset);
    offset += beginningCharacters(token);
  }
  return {
    tokens: tokens.map(({ token }) => token),
    token_logprobs: tokens.map(({ logprob }) => logprob),
    top_logprobs: tokens.map(byToken),
    text_offset: offsets,
  };
}

export function textLength(tokens: TokenLogprobs): number {
  return tokens.reduce((length, token) => length + beginningCharacters(token), 0);
}

/** OpenAI counts characters, and a token may be part of one: counted where it begins, none is missed or counted twice. */
function beginningCharacters({ bytes }: TokenChance): number {
  return bytes.filter((byte) => (byte & 0xc0) !== 0x80).length;
}

/** With the token itself, which need not be one of the likeliest. Of tokens that read alike, the likeliest is told. */
function byToken(sampled: TokenLogprobs[number]): Record<string, number> {
  const told = new Map<string, number>();
  for (const { token, logprob } of [...sampled.top, sampled]) {
    if (!told.has(token)) told.set(token, logprob);
  }
  return Object.fromEntries(told);
}
