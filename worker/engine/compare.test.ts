import { join } from "node:path";
import { expect, it } from "vitest";
import { onCpu } from "../onnx/providers.js";
import { describe, openSession } from "../onnx/runtime.js";
import { makeTurns } from "../onnx/turns.js";
import { compareWithCpu } from "./compare.js";
import { openDecoder } from "./decoder.js";
import { layoutOf } from "./layout.js";

const modelFile = join(import.meta.dirname, "../../test/fixtures/models/gen-mha/onnx/model.onnx");
const options = {
  modelFile,
  placement: { providers: ["webgpu"], gpu: 0 },
  turns: makeTurns(),
  intraOpThreads: 1,
  graphOptimization: "all",
  vocabSize: 320,
  tolerance: undefined,
} as const;

/** The model's logits on the CPU, in place of a GPU's. */
async function probe() {
  const session = await openSession({ ...options, placement: onCpu });
  const layout = layoutOf({ inputs: describe(session.inputMetadata), outputs: describe(session.outputMetadata) });
  const { probed } = await openDecoder(session, layout, options.vocabSize);
  await session.release();
  return { probed, layout };
}

it("compareWithCpu finds nothing in equal logits, and refuses others", async () => {
  const { probed, layout } = await probe();
  expect(await compareWithCpu(probed, layout, options)).toEqual([]);
  const others = probed.map((logit) => -logit);
  await expect(compareWithCpu(others, layout, options)).rejects.toThrow(
    "its answers there are not those of the CPU: element",
  );
  expect(await compareWithCpu(others, layout, { ...options, placement: onCpu })).toEqual([]);
});

it("compareWithCpu warns where the CPU cannot run the model", async () => {
  const { probed, layout } = await probe();
  const lacking = { ...options, modelFile: join(import.meta.dirname, "no-such-model.onnx") };
  const warnings = await compareWithCpu(probed, layout, lacking);
  expect(warnings).toEqual([
    expect.stringMatching(/^its answers were not compared with the CPU's, which cannot run the model: ./),
  ]);
  expect(warnings.join()).not.toContain(import.meta.dirname);
});
