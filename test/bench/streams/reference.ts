/**
 * Makes the prompts and computes the expected answers, before any measurement. A greedy answer is
 * the same in any batch and after a takeover only if no two tokens are nearly equally likely.
 * Leaves out prompts whose answers have such a near tie.
 */
import { writeFileSync } from "node:fs";
import { seededRandom } from "../../support/fleet/random.js";
import { serveJob } from "../support/child.js";
import type { StreamModel } from "../support/models.js";
import { Decoder } from "./decoder.js";
import type { Reference } from "./expected.js";
import { Vocabulary } from "./vocabulary.js";

export interface StreamReferenceJob {
  readonly model: StreamModel;
  readonly file: string;
}

const SEED = 20_261_121;
const MOST_ROWS = 32;
/** Spare rows of each batch, because some rows have a near tie. */
const SPARE_ROWS = 3;
/**
 * The least difference between the two largest logits, well above the change that other rows of a
 * batch cause.
 */
const LEAST_MARGIN = 1e-4;
/** If this many candidates for each prompt are not enough, the model or the margin is wrong. */
const MOST_TRIES = 8;

await serveJob(async ({ model, file }: StreamReferenceJob) => {
  const { folder, promptTokens, answerTokens, prompts } = model;
  const decoder = await Decoder.open(folder);
  const random = seededRandom(SEED + answerTokens); // other prompts for each length of answer
  const { plain } = Vocabulary.read(folder);
  const chosen: Reference[] = [];
  for (let tried = 0; chosen.length < prompts;) {
    const rows = Math.min(prompts - chosen.length + SPARE_ROWS, MOST_ROWS);
    tried += rows;
    if (tried > (prompts + SPARE_ROWS) * MOST_TRIES) throw new Error(`${model.name}: nearly always a near tie`);
    const batch = Array.from({ length: rows }, () => Array.from({ length: promptTokens }, () => random.pick(plain)));
    const { answers, margins } = await decode(decoder, batch, answerTokens);
    for (const [row, tokens] of answers.entries()) {
      if ((margins[row] ?? 0) >= LEAST_MARGIN) chosen.push({ prompt: batch[row] ?? [], tokens });
    }
  }
  writeFileSync(file, JSON.stringify(chosen.slice(0, prompts)));
  return { file };
});

/** @returns greedy answers, and the smallest margin in each */
async function decode(decoder: Decoder, prompts: readonly (readonly number[])[], tokens: number) {
  const answers: number[][] = prompts.map(() => []);
  const margins = prompts.map(() => Infinity);
  let pass = await decoder.begin(prompts);
  for (let step = 1; ; step++) {
    for (const [row, answer] of answers.entries()) {
      answer.push(pass.next[row] ?? -1);
      margins[row] = Math.min(margins[row] ?? 0, pass.margins[row] ?? 0);
    }
    if (step === tokens) return { answers, margins };
    pass = await decoder.go(pass);
  }
}
