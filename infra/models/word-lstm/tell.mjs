/**
 * Tells a tale: feeds an opening to `word-lstm` word by word, as a single sequence, then continues
 * with words that the model proposes. Every word is a request, for any worker; only Baton has the
 * state.
 *
 *   node infra/models/word-lstm/tell.mjs "Once upon a time" \
 *     [--temperature 0.4] [--seed 1] [--words 400] [--url http://localhost:8000]
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    temperature: { type: "string", default: "0.4" },
    seed: { type: "string", default: "1" },
    url: { type: "string", default: process.env["BATON_URL"] ?? "http://localhost:8000" },
    words: { type: "string", default: "400" },
  },
});
/** @type {string[]} the word of each token; tokens without a word have a name in <> */
const vocabulary = JSON.parse(readFileSync(new URL("./vocab.json", import.meta.url), "utf8"));
const tokens = new Map(vocabulary.map((word, token) => [word, token]));
const opening = (positionals[0] ?? "Once upon a time").match(/[\p{L}\p{N}'-]+|[^\s\p{L}\p{N}]/gu) ?? [];
/** @type {readonly string[]} */
const unknown = opening.filter((word) => !tokens.has(word));
if (unknown.length > 0) {
  console.error(
    `word-lstm does not know: ${unknown.join(", ")}. Its words: ${new URL("./words.txt", import.meta.url).pathname}`,
  );
  process.exit(1);
}

const sequence = `tale-${Date.now()}`;

/**
 * Feeds a word; returns the probability of every token to come next.
 *
 * @param {number} token
 * @param {{ start?: boolean, end?: boolean }} [flags] whether this is the sequence's first or last
 *   word
 * @returns {Promise<number[]>}
 */
async function step(token, { start = false, end = false } = {}) {
  const response = await fetch(`${values.url}/v2/models/word-lstm/infer`, {
    method: "POST",
    headers: { "Idempotency-Key": `${sequence}-${count++}` },
    body: JSON.stringify({
      parameters: { sequence_id: sequence, sequence_start: start, sequence_end: end },
      inputs: [{ name: "TOKEN", datatype: "INT64", shape: [1, 1], data: [token] }],
      outputs: [{ name: "PROBS" }],
    }),
  });
  /** @type {{ error?: string, outputs?: [{ data: number[] }] }} */
  const { error, outputs } = JSON.parse(await response.text());
  if (outputs === undefined) throw new Error(error);
  return outputs[0].data;
}
let count = 0;

/**
 * The generator mulberry32, which is small: the same tale for the same seed.
 *
 * @param {number} seed
 */
function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
const random = randomNumbers(Number(values.seed));

/**
 * Draws a token.
 *
 * @param {number[]} probabilities
 */
function choose(probabilities) {
  const temperature = Number(values.temperature);
  if (temperature === 0) return probabilities.indexOf(Math.max(...probabilities));
  const weights = probabilities.map((p) => p ** (1 / temperature));
  let left = random() * weights.reduce((sum, weight) => sum + weight, 0);
  return weights.findIndex((weight) => (left -= weight) <= 0);
}

let last = "";
/** @param {string} word */
function say(word) {
  const glued =
    last === "" || /^[,.!?:;]$/.test(word) || (word === '"' && quoteIsOpen) || (last === '"' && quoteIsOpen);
  if (word === '"') quoteIsOpen = !quoteIsOpen;
  process.stdout.write(glued ? word : ` ${word}`);
  last = word;
}
let quoteIsOpen = false;

/** @type {number[]} */
let probabilities = [];
for (const [i, word] of opening.entries()) {
  say(word);
  probabilities = await step(tokens.get(word) ?? 0, { start: i === 0 });
}
for (let i = 0; i < Number(values.words); i++) {
  const token = choose(probabilities);
  const word = vocabulary[token] ?? "<end>";
  if (word === "<end>") {
    await step(token, { end: true });
    break;
  }
  say(word);
  probabilities = await step(token);
}
process.stdout.write("\n");
