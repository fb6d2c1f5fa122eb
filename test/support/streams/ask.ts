/**
 * The requests of a load of streams, drawn from a seed. A seed always gives the same list, so a
 * test can compare a broken run with an undisturbed run.
 */
import type { Random } from "../fleet/random.js";

export interface StreamAsk {
  readonly name: string;
  readonly model: string;
  /** The prompt's text, or its tokens. */
  readonly prompt: string | readonly number[];
  /** Parameters under OpenAI's names, such as `max_tokens` and `seed`. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

export interface AskPlan {
  readonly count: number;
  readonly model: string;
  /** The fewest and the most tokens of an answer. */
  readonly tokens: readonly [number, number];
  readonly random: Random;
}

const words = [
  "baton",
  "runner",
  "the",
  "and",
  "over",
  "hands",
  "it",
  "on",
  "café",
  "never",
  "drops",
  "👋",
  "a",
  "lap",
];

/**
 * Plans requests at temperature 1, so that a wrong state or a wrong draw shows in the very next
 * token.
 */
export function planAsks({ count, model, tokens: [fewest, most], random }: AskPlan): StreamAsk[] {
  return Array.from({ length: count }, (_, i) => {
    const prompt = Array.from({ length: random.between(1, 40) }, () => random.pick(words)).join(" ");
    const parameters = {
      max_tokens: random.between(fewest, most),
      temperature: 1,
      seed: random.between(0, 1_000_000_000),
      ...kinds[i % kinds.length],
    };
    return { name: `stream-${i}`, model, prompt, parameters };
  });
}

/** A request for this many tokens of `gen-mha`, with this seed. */
export function askFor(maxTokens: number, prompt: string, seed: number): StreamAsk {
  const parameters = { max_tokens: maxTokens, temperature: 1, seed };
  return { name: `${maxTokens} tokens`, model: "gen-mha", prompt, parameters };
}

/**
 * Parameters, in turn, that make a worker need different facts after a takeover: past text,
 * withheld text, counts of tokens.
 */
const kinds: readonly Readonly<Record<string, unknown>>[] = [
  {},
  { top_p: 0.9, presence_penalty: 0.5, frequency_penalty: 0.3 },
  { stop: ["@@@", "hand over"], repetition_penalty: 1.1 },
  { top_k: 40, min_p: 0.01 },
  { n: 2 },
];
