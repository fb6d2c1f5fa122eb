/**
 * The yardstick for generation: greedy decoding of the same prompts in a single process, a batch at
 * a time, with nothing between the model and the clock.
 */
import { serveJob } from "../support/child.js";
import type { StreamModel } from "../support/models.js";
import { percentiles, type Percentiles } from "../support/statistics.js";
import { Decoder } from "./decoder.js";
import { readReferences, type Reference } from "./expected.js";

export interface BareStreamJob {
  readonly model: StreamModel;
  /** Rows of a batch, all begun together. */
  readonly batch: number;
  readonly references: string;
  readonly warmupMs: number;
  readonly measureMs: number;
}

export interface BareStreamResult {
  readonly tokensPerSecond: number;
  readonly firstTokenMs: Percentiles;
  readonly betweenTokensMs: Percentiles;
  /** Percentiles of the answers' own means. */
  readonly meanBetweenMs: Percentiles;
  /** Microseconds of CPU per token, of all threads together. */
  readonly cpuUs: number;
  /** How many streams had their answer checked. */
  readonly checked: number;
  readonly wrong: number;
}

await serveJob(async (job: BareStreamJob, measuring): Promise<BareStreamResult> => {
  const { model, batch, warmupMs, measureMs } = job;
  const references = readReferences(job.references);
  const decoder = await Decoder.open(model.folder);
  let taken = 0;
  let checked = 0;
  let wrong = 0;

  const check = (rows: readonly Reference[], answers: readonly (readonly number[])[]) => {
    for (const [row, { tokens }] of rows.entries()) {
      checked++;
      if (tokens.some((token, step) => answers[step]?.[row] !== token)) wrong++;
    }
  };

  /** Decodes whole answers until the time is up, and completes the last answer. */
  const loop = async (ms: number) => {
    const firstMs: number[] = [];
    const betweenMs: number[] = [];
    const meanMs: number[] = [];
    const startedAt = performance.now();
    let now = startedAt;
    for (; now - startedAt < ms; now = performance.now()) {
      const rows = Array.from({ length: batch }, () => references[taken++ % references.length] as Reference);
      let pass = await decoder.begin(rows.map(({ prompt }) => prompt));
      const answers = [pass.next];
      let before = now;
      const firstAt = (now = performance.now());
      firstMs.push(firstAt - before);
      while (answers.length < model.answerTokens) {
        pass = await decoder.go(pass);
        answers.push(pass.next);
        before = now;
        betweenMs.push((now = performance.now()) - before);
      }
      meanMs.push((now - firstAt) / (answers.length - 1));
      check(rows, answers);
    }
    const tokens = (firstMs.length + betweenMs.length) * batch;
    return { firstMs, betweenMs, meanMs, tokens, seconds: (now - startedAt) / 1_000 };
  };

  await loop(warmupMs);
  measuring();
  const cpuBefore = process.cpuUsage();
  const { firstMs, betweenMs, meanMs, tokens, seconds } = await loop(measureMs);
  const { user, system } = process.cpuUsage(cpuBefore);
  return {
    tokensPerSecond: tokens / seconds,
    firstTokenMs: percentiles(firstMs),
    betweenTokensMs: percentiles(betweenMs),
    meanBetweenMs: percentiles(meanMs),
    cpuUs: (user + system) / tokens,
    checked,
    wrong,
  };
});
