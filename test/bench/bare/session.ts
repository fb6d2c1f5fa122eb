/**
 * ONNX Runtime with the worker's settings, but with as many threads as are fastest in a process
 * that has the machine for itself.
 */
import * as ort from "onnxruntime-node";

/** The outputs in the worker's order: states first. */
export const outputNames = ["H_OUT", "C_OUT", "Y"] as const;

/** @param threads inside an operator; 0 for a thread per core */
export function openSession(file: string, threads = 0): Promise<ort.InferenceSession> {
  return ort.InferenceSession.create(file, {
    executionProviders: ["cpu"],
    intraOpNumThreads: threads,
    graphOptimizationLevel: "all",
    extra: { session: { intra_op: { allow_spinning: "0" }, inter_op: { allow_spinning: "0" } } },
  });
}

export function floats(data: Float32Array, shape: readonly number[]): ort.Tensor {
  return new ort.Tensor("float32", data, shape);
}

export function floatsOf(tensor: ort.Tensor | undefined): Float32Array {
  if (tensor?.type !== "float32") throw new TypeError("the model gave no FP32 output");
  return tensor.data as Float32Array;
}
