/**
 * A thread that tries execution providers with a small model, because a library that loads may
 * still compute nothing. Only threads of models import ONNX Runtime, and this is one of them.
 */
import { makeTensor, openSession } from "../onnx/runtime.js";
import { serveThread } from "../thread/serve.js";
import type { ProbeOptions, ProbeRequest } from "./protocol.js";

/** An ONNX file of one node: Y = X + X, of 32-bit floats. */
const DOUBLE = Buffer.from(
  "CAc6NwoOCgFYCgFYEgFZIgNBZGQSAWdaEAoBWBILCgkIARIFCgMSAW5iEAoBWRILCgkIARIFCgMSAW5CBAoAEA0=",
  "base64",
);

await serveThread<ProbeOptions, ProbeRequest, null, null>(async ({ turns }) => ({
  ready: null,
  async answer(placement) {
    const session = await openSession({
      modelFile: DOUBLE,
      placement,
      turns,
      intraOpThreads: 1,
      graphOptimization: "disabled",
    });
    try {
      const X = makeTensor("FP32", Float32Array.of(0.5, 21), [2]);
      const { Y } = await session.run({ X });
      const doubled = [...((Y?.data ?? []) as Float32Array)];
      if (doubled.join() !== "1,42") throw new Error(`it computes ${doubled.join(" and ")} where 1 and 42 are right`);
      return { answer: null };
    } finally {
      await session.release();
    }
  },
}));
