/** The least work of a takeover, measured by itself: the forward passes over prompt and history. */
import { serveJob } from "../support/child.js";
import { long } from "../support/models.js";
import { median } from "../support/statistics.js";
import { Decoder, type Pass } from "./decoder.js";
import { readReferences } from "./expected.js";

export interface RecomputeJob {
  readonly references: string;
  readonly histories: readonly number[];
  /** How many positions a worker computes at once (BATON_PREFILL_TOKENS). */
  readonly chunk: number;
}

export interface Recompute {
  readonly history: number;
  readonly wholeMs: number;
  readonly chunksMs: number;
}

/** How many runs each median covers. */
const TIMES = 5;

await serveJob(async ({ references, histories, chunk }: RecomputeJob): Promise<{ passes: Recompute[] }> => {
  const [reference] = readReferences(references);
  if (reference === undefined) throw new Error("no reference");
  const decoder = await Decoder.open(long.folder);

  const timed = async (tokens: readonly number[], atOnce: number) => {
    const startedAt = performance.now();
    let pass: Pass = await decoder.begin([tokens.slice(0, atOnce)]);
    for (let at = atOnce; at < tokens.length; at += atOnce)
      pass = await decoder.go(pass, [tokens.slice(at, at + atOnce)]);
    return performance.now() - startedAt;
  };

  const passes: Recompute[] = [];
  for (const history of histories) {
    const tokens = [...reference.prompt, ...reference.tokens.slice(0, history)];
    const whole: number[] = [];
    const chunks: number[] = [];
    for (let i = -1; i < TIMES; i++) {
      const ms = { whole: await timed(tokens, tokens.length), chunks: await timed(tokens, chunk) };
      if (i < 0) continue; // the first run warms up
      whole.push(ms.whole);
      chunks.push(ms.chunks);
    }
    passes.push({ history, wholeMs: median(whole), chunksMs: median(chunks) });
  }
  return { passes };
});
