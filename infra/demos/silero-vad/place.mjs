/**
 * Puts Silero VAD into a model repository: the published file, and a configuration that says little
 * more than that the model has sequences.
 *
 *   node infra/demos/silero-vad/place.mjs FOLDER
 */
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const [folder] = process.argv.slice(2);
if (folder === undefined) {
  console.error("Say which folder is the model repository: node infra/demos/silero-vad/place.mjs FOLDER");
  process.exit(1);
}
const published = dirname(createRequire(import.meta.url).resolve("@ricky0123/vad-web"));
const model = join(folder, "silero-vad");
mkdirSync(join(model, "1"), { recursive: true });
copyFileSync(join(published, "silero_vad_v5.onnx"), join(model, "1/model.onnx"));
writeFileSync(
  join(model, "config.pbtxt"),
  `max_batch_size: 64
sequence_batching { max_sequence_idle_microseconds: 60000000 }
parameters { key: "constant_input:sr" value: { string_value: "16000" } }
`,
);
console.log(`${model} is there.`);
