/**
 * Computes every pattern's outputs, one row at a time, and writes them to a file for the
 * measurements.
 */
import { writeFileSync } from "node:fs";
import { serveJob } from "../support/child.js";
import { modelFile, type BenchModel } from "../support/models.js";
import { outputAt, PATTERNS, STEPS, vectorAt, vectors } from "../support/patterns.js";
import { floats, floatsOf, openSession, outputNames } from "./session.js";

export interface ReferenceJob {
  readonly model: BenchModel;
  readonly file: string;
}

await serveJob(async ({ model, file }: ReferenceJob) => {
  const { size } = model;
  const session = await openSession(modelFile(model));
  const inputs = vectors(size);
  const outputs = new Float32Array(PATTERNS * STEPS * size);
  for (let pattern = 0; pattern < PATTERNS; pattern++) {
    let h = new Float32Array(size);
    let c = new Float32Array(size);
    for (let step = 0; step < STEPS; step++) {
      const x = inputs[vectorAt(pattern, step)] as Float32Array;
      const shape = [1, size];
      const ran = await session.run({ X: floats(x, shape), H: floats(h, shape), C: floats(c, shape) }, [
        ...outputNames,
      ]);
      h = Float32Array.from(floatsOf(ran["H_OUT"]));
      c = Float32Array.from(floatsOf(ran["C_OUT"]));
      outputs.set(floatsOf(ran["Y"]), outputAt(pattern, step, size));
    }
  }
  writeFileSync(file, Buffer.from(outputs.buffer));
  return { file };
});
