// Checks onnx/model.onnx in ONNX Runtime: a prompt given at once, in two pieces, token by token, and padded at the left
// next to a longer one has the same logits. Run it from the repository's root: node infra/models/tale-gpt/check.mjs
import { readFileSync } from "node:fs";
import ort from "onnxruntime-node";

const read = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url), "utf8"));
const config = read("config.json");
const session = await ort.InferenceSession.create(readFileSync(new URL("onnx/model.onnx", import.meta.url)));
const layers = [...Array(config.num_hidden_layers).keys()];
const cacheNames = layers.flatMap((n) => [`${n}.key`, `${n}.value`]);

const int64 = (rows) => new ort.Tensor("int64", BigInt64Array.from(rows.flat(), BigInt), [rows.length, rows[0].length]);
const nothing = (batch) =>
  cacheNames.map(() => new ort.Tensor("float32", [], [batch, config.num_key_value_heads, 0, config.head_dim]));

/** Logits as [batch][position] -> Float32Array, and the cache after. */
async function run(tokens, mask, past = nothing(tokens.length)) {
  const positions = mask.map((row) => row.map((_, i) => Math.max(0, row.slice(0, i + 1).reduce((a, b) => a + b) - 1)));
  const feeds = { input_ids: int64(tokens), attention_mask: int64(mask) };
  feeds.position_ids = int64(positions.map((row) => row.slice(-tokens[0].length)));
  cacheNames.forEach((name, i) => (feeds[`past_key_values.${name}`] = past[i]));
  const results = await session.run(feeds);
  const size = config.vocab_size;
  const logits = tokens.map((row, b) =>
    row.map((_, i) => results.logits.data.slice((b * row.length + i) * size, (b * row.length + i + 1) * size)),
  );
  return { logits, past: cacheNames.map((name) => results[`present.${name}`]) };
}

const ones = (length) => Array(length).fill(1);
const difference = (a, b) => Math.max(...a.map((row, i) => Math.max(...row.map((x, j) => Math.abs(x - b[i][j])))));
function report(what, value) {
  console.log(`${what}: largest difference ${value.toExponential(1)}`);
  if (!(value < 1e-4)) process.exitCode = 1;
}

let seed = 7;
const random = (length) => Array.from({ length }, () => (seed = (seed * 48271) % 2147483647) % config.vocab_size);
const prompt = [1, ...random(40)];
const long = [1, ...random(60)];

const whole = (await run([prompt], [ones(41)])).logits[0];

const first = await run([prompt.slice(0, 17)], [ones(17)]);
const second = await run([prompt.slice(17)], [ones(41)], first.past);
report("two pieces", difference([...first.logits[0], ...second.logits[0]], whole));

let past;
const single = [];
for (let i = 0; i < prompt.length; i++) {
  const step = await run([[prompt[i]]], [ones(i + 1)], past);
  single.push(step.logits[0][0]);
  past = step.past;
}
report("token by token", difference(single, whole));

const pad = long.length - prompt.length;
const mask = [[...Array(pad).fill(0), ...ones(41)], ones(61)];
const padded = await run([[...Array(pad).fill(config.pad_token_id), ...prompt], long], mask);
report("padded", difference(padded.logits[0].slice(pad), whole));
report("beside a padded row", difference(padded.logits[1], (await run([long], [ones(61)])).logits[0]));
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
report("decoding after padding", difference(decoded.logits[0], alone.logits[0]));

// Whatever stands in padded positions must not matter at all.
const other = await run([[...random(pad), ...prompt], long], mask);
report("other padding", difference(other.logits[0].slice(pad), padded.logits[0].slice(pad)));
