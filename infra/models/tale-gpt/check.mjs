/**
 * Checks onnx/model.onnx in ONNX Runtime: a prompt has the same logits at once, in two pieces,
 * token by token, or padded at the left beside a longer prompt. Run it from the repository's root:
 * node infra/models/tale-gpt/check.mjs
 */
import { readFileSync } from "node:fs";
import ort from "onnxruntime-node";

/**
 * @type {{ num_hidden_layers: number, num_key_value_heads: number, head_dim: number,
 *   vocab_size: number, pad_token_id: number }}
 */
const config = JSON.parse(readFileSync(new URL("config.json", import.meta.url), "utf8"));
const session = await ort.InferenceSession.create(readFileSync(new URL("onnx/model.onnx", import.meta.url)));
const layers = [...Array(config.num_hidden_layers).keys()];
const cacheNames = layers.flatMap((n) => [`${n}.key`, `${n}.value`]);

/** @param {number[][]} rows of one length */
const int64 = (rows) => new ort.Tensor("int64", BigInt64Array.from(rows.flat(), BigInt), [rows.length, lengthOf(rows)]);
/** @param {number[][]} rows */
const lengthOf = (rows) => rows[0]?.length ?? 0;
/**
 * An empty cache.
 *
 * @param {number} batch the rows of the cache
 * @returns {ort.Tensor[]}
 */
const nothing = (batch) =>
  cacheNames.map(() => new ort.Tensor("float32", [], [batch, config.num_key_value_heads, 0, config.head_dim]));

/**
 * @param {number[][]} tokens
 * @param {number[][]} mask 1 if a token counts, over the cache's positions and the new positions
 * @param {ort.Tensor[]} [past] the cache before, in the order of `cacheNames`
 * @returns the logits as [row][position], one number for each token of the vocabulary, and the
 *   cache after
 */
async function run(tokens, mask, past = nothing(tokens.length)) {
  const positions = mask.map((row) => row.map((_, i) => Math.max(0, row.slice(0, i + 1).reduce((a, b) => a + b) - 1)));
  const results = await session.run({
    input_ids: int64(tokens),
    attention_mask: int64(mask),
    position_ids: int64(positions.map((row) => row.slice(-lengthOf(tokens)))),
    ...Object.fromEntries(past.map((tensor, i) => [`past_key_values.${cacheNames[i]}`, tensor])),
  });
  const data = output(results, "logits").data;
  if (!(data instanceof Float32Array)) throw new Error("the logits are not float32");
  const size = config.vocab_size;
  const logits = tokens.map((row, b) =>
    row.map((_, i) => data.slice((b * row.length + i) * size, (b * row.length + i + 1) * size)),
  );
  return { logits, past: cacheNames.map((name) => output(results, `present.${name}`)) };
}

/**
 * @param {ort.InferenceSession.ReturnType} results
 * @param {string} name
 */
function output(results, name) {
  const tensor = results[name];
  if (tensor === undefined) throw new Error(`the model has no output ${name}`);
  return tensor;
}

/**
 * @param {number} length
 * @returns {number[]}
 */
const ones = (length) => Array(length).fill(1);
/**
 * The largest difference between two lists of logits; NaN if a list is shorter.
 *
 * @param {Float32Array[]} a
 * @param {Float32Array[]} b
 */
const difference = (a, b) =>
  Math.max(...a.map((row, i) => Math.max(...row.map((x, j) => Math.abs(x - (b[i]?.[j] ?? NaN))))));
/**
 * @param {string} what
 * @param {number} value
 */
function report(what, value) {
  console.log(`${what}: largest difference ${value.toExponential(1)}`);
  if (!(value < 1e-4)) process.exitCode = 1;
}

let seed = 7;
/** @param {number} length */
const random = (length) => Array.from({ length }, () => (seed = (seed * 48271) % 2147483647) % config.vocab_size);
const prompt = [1, ...random(40)];
const long = [1, ...random(60)];

const [whole = []] = (await run([prompt], [ones(41)])).logits;

const first = await run([prompt.slice(0, 17)], [ones(17)]);
const second = await run([prompt.slice(17)], [ones(41)], first.past);
report("two pieces", difference([...first.logits, ...second.logits].flat(), whole));

/** @type {ort.Tensor[] | undefined} */
let past;
/** @type {Float32Array[]} */
const single = [];
for (const [i, token] of prompt.entries()) {
  const step = await run([[token]], [ones(i + 1)], past);
  single.push(...step.logits.flat());
  past = step.past;
}
report("token by token", difference(single, whole));

const pad = long.length - prompt.length;
const mask = [[...Array(pad).fill(0), ...ones(41)], ones(61)];
const padded = await run([[...Array(pad).fill(config.pad_token_id), ...prompt], long], mask);
const [paddedRow = [], longRow = []] = padded.logits;
if (paddedRow.length === 0 || longRow.length === 0) throw new Error("the model gave no logits");
report("padded", difference(paddedRow.slice(pad), whole));
report("beside a padded row", difference(longRow, (await run([long], [ones(61)])).logits.flat()));
if (padded.logits.flat().some((row) => row.some((x) => !Number.isFinite(x)))) {
  console.log("a padded position is not finite");
  process.exitCode = 1;
}

const next = random(1);
const decoded = await run(
  [next, next],
  mask.map((row) => [...row, 1]),
  padded.past,
);
const alone = await run([next], [ones(42)], (await run([prompt], [ones(41)])).past);
report("decoding after padding", difference(decoded.logits.slice(0, 1).flat(), alone.logits.flat()));

// The tokens in padded positions must not matter at all.
const [otherRow = []] = (await run([[...random(pad), ...prompt], long], mask)).logits;
report("other padding", difference(otherRow.slice(pad), paddedRow.slice(pad)));
