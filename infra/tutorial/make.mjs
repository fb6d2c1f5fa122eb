/**
 * Makes `my_lstm_model` in `infra/models/`: the tutorial's configuration in Triton's own fields,
 * and an LSTM of two layers. The weights are pseudo-random, so the repository need not keep them.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { initializer, input, model, node, output } from "./onnx-file.mjs";

const INPUT = 128;
const OUTPUT = 10;
const LAYERS = 2;
/**
 * Numbers in a layer's output. A row of the state belongs to a layer: the layer's output, then the
 * layer's memory.
 */
const HIDDEN = 512;
const SEED = 20_261_122;

/**
 * Makes the model, unless the folder has a model from these same files.
 *
 * @param {string} folder of the model
 */
export function makeTutorialModel(folder) {
  const config = readFileSync(join(import.meta.dirname, "genuine.pbtxt"));
  const sources = ["make.mjs", "onnx-file.mjs"].map((name) => readFileSync(join(import.meta.dirname, name)));
  const digest = createHash("sha256")
    .update(Buffer.concat([config, ...sources]))
    .digest("hex");
  const stamp = join(folder, ".made-from");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === digest) return;
  mkdirSync(join(folder, "1"), { recursive: true });
  writeFileSync(join(folder, "config.pbtxt"), config);
  // A process that reads the folder meanwhile must find no half-written file.
  const part = join(folder, `.model-${process.pid}.part`);
  writeFileSync(part, lstm());
  renameSync(part, join(folder, "1/model.onnx"));
  writeFileSync(stamp, digest);
}

function lstm() {
  const random = uniform(SEED);
  /** @type {(name: string, dims: readonly number[]) => Buffer} */
  const weights = (name, dims) => {
    const values = new Float32Array(dims.reduce((count, dim) => count * dim, 1));
    for (let i = 0; i < values.length; i++) values[i] = (random() * 2 - 1) / Math.sqrt(HIDDEN);
    return initializer(name, dims, values);
  };
  /** @type {(name: string, values: readonly number[]) => Buffer} */
  const integers = (name, values) => initializer(name, [values.length], BigInt64Array.from(values, BigInt));
  const layers = Array.from({ length: LAYERS }, (_, layer) => layer);
  const rows = layers.map((layer) => `row_${layer}`);
  const nextRows = layers.map((layer) => `next_row_${layer}`);
  return model("my_lstm_model", [
    input("INPUT__0", ["batch", INPUT]),
    input("lstm_state_in", ["batch", LAYERS, 2 * HIDDEN]),
    output("OUTPUT__0", ["batch", OUTPUT]),
    output("lstm_state_out", ["batch", LAYERS, 2 * HIDDEN]),
    integers("first", [0]),
    integers("halves", [HIDDEN, HIDDEN]),
    integers("each", Array(LAYERS).fill(1)),
    weights("out_weights", [HIDDEN, OUTPUT]),
    weights("out_bias", [OUTPUT]),
    node("Unsqueeze", ["INPUT__0", "first"], ["h_below_0"]),
    node("Split", ["lstm_state_in", "each"], rows, { axis: 1 }),
    ...layers.flatMap((layer) => layerParts(layer, weights)),
    node("Concat", nextRows, ["lstm_state_out"], { axis: 1 }),
    node("Squeeze", [`h_below_${LAYERS}`, "first"], ["top"]),
    node("Gemm", ["top", "out_weights", "out_bias"], ["OUTPUT__0"]),
  ]);
}

/**
 * The nodes of a layer. They compute the layer's next row of the state and its output, from the row
 * and from the output of the layer below.
 *
 * @param {number} layer
 * @param {(name: string, dims: readonly number[]) => Buffer} weights
 */
function layerParts(layer, weights) {
  /** @type {(part: string) => string} */
  const own = (part) => `${part}_${layer}`;
  const above = `h_below_${layer + 1}`;
  const ofLstm = [own("h_below"), own("w"), own("r"), own("b"), "", own("h"), own("c")];
  return [
    weights(own("w"), [1, 4 * HIDDEN, layer === 0 ? INPUT : HIDDEN]),
    weights(own("r"), [1, 4 * HIDDEN, HIDDEN]),
    weights(own("b"), [1, 8 * HIDDEN]),
    node("Transpose", [own("row")], [own("both")], { perm: [1, 0, 2] }),
    node("Split", [own("both"), "halves"], [own("h"), own("c")], { axis: 2 }),
    node("LSTM", ofLstm, ["", above, own("next_c")], { hidden_size: HIDDEN }),
    node("Concat", [above, own("next_c")], [own("next_both")], { axis: 2 }),
    node("Transpose", [own("next_both")], [own("next_row")], { perm: [1, 0, 2] }),
  ];
}

/**
 * Numbers from 0 to below 1, by the 32-bit generator known as mulberry32.
 *
 * @param {number} seed
 */
function uniform(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
