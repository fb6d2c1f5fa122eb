import { expect, it } from "vitest";
import { fileName } from "./load-version.js";
import { onCpu } from "./onnx/providers.js";

const named = { "9.0": "hopper.onnx", "8.0": "ampere.onnx" };
const on = (provider: "cuda" | "tensorrt" | "webgpu", gpu: number) => ({ providers: [provider], gpu }) as const;

it.each([
  ["a card with a file", on("cuda", 0), ["9.0", "7.5"], "hopper.onnx"],
  ["another card", on("cuda", 1), ["9.0", "8.0"], "ampere.onnx"],
  ["TensorRT", on("tensorrt", 0), ["8.0"], "ampere.onnx"],
  ["a card without a file", on("cuda", 1), ["9.0", "7.5"], undefined],
  ["a driver that does not tell", on("cuda", 0), [], undefined],
  ["WebGPU", on("webgpu", 0), ["9.0"], undefined],
  ["the CPU", onCpu, ["9.0"], undefined],
])("the file of cc_model_filenames for %s", (_, placement, capabilities, file) => {
  expect(fileName(placement, named, capabilities)?.file).toBe(file);
});
