/**
 * The yardstick for steps: ONNX Runtime alone, in a loop, with states in memory and inputs stacked
 * beforehand.
 */
import { serveJob } from "../support/child.js";
import { AnswerCheck } from "../support/answers.js";
import { modelFile, type BenchModel } from "../support/models.js";
import { outputAt, PATTERNS, readFloats, STEPS, vectorAt, vectors } from "../support/patterns.js";
import { percentiles, type Percentiles } from "../support/statistics.js";
import { floats, floatsOf, openSession, outputNames } from "./session.js";

export interface BareJob {
  readonly model: BenchModel;
  /** Rows of a single run of the model. */
  readonly batch: number;
  readonly expected: string;
  readonly warmupMs: number;
  readonly measureMs: number;
}

export interface BareResult {
  readonly stepsPerSecond: number;
  /** Milliseconds of a single run of the model. */
  readonly runMs: Percentiles;
  /** Microseconds of CPU per step, of all threads together. */
  readonly cpuUs: number;
  readonly checked: number;
  readonly wrong: number;
}

await serveJob(async ({ model, batch, expected, warmupMs, measureMs }: BareJob, measuring): Promise<BareResult> => {
  const { size } = model;
  const session = await openSession(modelFile(model));
  const inputs = vectors(size);
  const shape = [batch, size];
  const stacked = Array.from({ length: STEPS }, (_, step) => {
    const x = new Float32Array(batch * size);
    for (let row = 0; row < batch; row++) x.set(inputs[vectorAt(row % PATTERNS, step)] as Float32Array, row * size);
    return floats(x, shape);
  });
  const zeros = floats(new Float32Array(batch * size), shape);
  const check = new AnswerCheck(readFloats(expected), size);

  const loop = async (ms: number) => {
    const runs: number[] = [];
    const startedAt = performance.now();
    let now = startedAt;
    let [H, C] = [zeros, zeros];
    for (let step = 0; now - startedAt < ms; step = (step + 1) % STEPS) {
      if (step === 0) [H, C] = [zeros, zeros];
      const ran = await session.run({ X: stacked[step] as typeof zeros, H, C }, [...outputNames]);
      [H, C] = [ran["H_OUT"] as typeof zeros, ran["C_OUT"] as typeof zeros];
      const y = floatsOf(ran["Y"]);
      for (let row = 0; row < batch; row++) {
        check.check((i) => y[row * size + i] as number, outputAt(row % PATTERNS, step, size));
      }
      const before = now;
      now = performance.now();
      runs.push(now - before);
    }
    return { runs, seconds: (now - startedAt) / 1_000 };
  };

  await loop(warmupMs);
  measuring();
  const cpuBefore = process.cpuUsage();
  const { runs, seconds } = await loop(measureMs);
  const { user, system } = process.cpuUsage(cpuBefore);
  const steps = runs.length * batch;
  const { checked, wrong } = check;
  return { stepsPerSecond: steps / seconds, runMs: percentiles(runs), cpuUs: (user + system) / steps, checked, wrong };
});
