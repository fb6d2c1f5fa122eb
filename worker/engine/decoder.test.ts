import { describe, expect, it } from "vitest";
import { makeTensor, type OrtTensor, type Session } from "../onnx/runtime.js";
import { emptyArrays, openDecoder } from "./decoder.js";
import type { DecoderLayout } from "./layout.js";

const VOCABULARY = 3;
const HEADS = 2;
const layout: DecoderLayout = {
  kv: { datatype: "FP32", tensors: [{ past: "past_key_values.0", present: "present.0", heads: HEADS, dim: 1 }] },
  positionIds: false,
  attentionMask: true,
  logitsToKeep: undefined,
  cacheBranch: false,
  logits: "FP32",
  vocabSize: VOCABULARY,
};

/** The outputs of a graph for a pass with this many rows, tokens per row and positions. */
type Shapes = (rows: number, steps: number, positions: number) => Record<"logits" | "present", readonly number[]>;

const right: Shapes = (rows, steps, positions) => ({
  logits: [rows, steps, VOCABULARY],
  present: [rows, HEADS, positions, 1],
});

/** A graph that gives zeros of these shapes once a pass has more than one row. */
function graph(shapes: Shapes): Session {
  const run = (feeds: Readonly<Record<string, OrtTensor>>) => {
    const [rows = 0, steps = 0] = feeds["input_ids"]?.dims ?? [];
    const given = (rows > 1 ? shapes : right)(rows, steps, feeds["attention_mask"]?.dims[1] ?? 0);
    const zeros = (shape: readonly number[]) =>
      makeTensor("FP32", new Float32Array(shape.reduce((product, dim) => product * dim, 1)), shape);
    return Promise.resolve({ logits: zeros(given.logits), "present.0": zeros(given.present) });
  };
  return { run, inputMetadata: [], outputMetadata: [] } as unknown as Session;
}

async function passOfTwo(shapes: Shapes) {
  const { forward } = await openDecoder(graph(shapes), layout, VOCABULARY);
  const past = { rows: 2, capacity: 4, arrays: emptyArrays(layout.kv, 2 * 4) };
  return forward({ ids: BigInt64Array.of(1n, 2n), steps: 1, lengths: [4, 3], past });
}

describe("a pass of two rows", () => {
  it("gives each row its logits and its caches", async () => {
    const { logits, present } = await passOfTwo(right);
    expect(logits.map(({ length }) => length)).toEqual([VOCABULARY, VOCABULARY]);
    expect(present).toMatchObject({ rows: 2, capacity: 5 });
  });

  it.each<[string, Shapes]>([
    ["logits of one row", (...at) => ({ ...right(...at), logits: [1, 1, VOCABULARY] })],
    ["logits of one row with as many numbers", (...at) => ({ ...right(...at), logits: [1, 2, VOCABULARY] })],
    ["logits of three rows", (...at) => ({ ...right(...at), logits: [3, 1, VOCABULARY] })],
    ["caches of one row", (...at) => ({ ...right(...at), present: [1, HEADS, 5, 1] })],
    ["caches of as many numbers in another order", (...at) => ({ ...right(...at), present: [HEADS, 2, 1, 5] })],
  ])("fails if the graph gives %s", async (_, shapes) => {
    await expect(passOfTwo(shapes)).rejects.toThrow(TypeError);
  });
});
