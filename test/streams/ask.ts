/** What streams are asked for, drawn from a seed: the same list every time, so that a broken run can be compared with an undisturbed one. */
import type { Random } from "../setup/random.js";

export interface StreamAsk {
  readonly name: string;
  readonly model: string;
  /** Text, or tokens. */
  readonly prompt: string | readonly number[];
  /** In OpenAI's words: `max_tokens`, `seed`, … */
  readonly parameters: Readonly<Record<string, unknown>>;
}

export interface AskPlan {
  readonly count: number;
  readonly model: string;
  /** Fewest and most tokens of an answer. */
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

/** Sampled at temperature 1, so that a wrong state or a wrong draw shows in the very next token. */
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

/** Everything that a worker must know again after a takeover, in turn: what was said, what was held back, what was counted. */
const kinds: readonly Readonly<Record<string, unknown>>[] = [
  {},
  { top_p: 0.9, presence_penalty: 0.5, frequency_penalty: 0.3 },
  { stop: ["@@@", "hand over"], repetition_penalty: 1.1 },
  { top_k: 40, min_p: 0.01 },
  { n: 2 },
];
