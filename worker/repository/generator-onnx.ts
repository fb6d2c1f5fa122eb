/** Chooses one of a generator's ONNX files by name. */
import { LoadError } from "./load-error.js";

const FOLDER = "onnx";

/** What exporters call a decoder that takes and gives its cache; the second is optimum's older name. */
const names = ["model", "decoder_model_merged"];

/** Best first: unquantised, then half precision, then eight bits, then four. The suffixes are those of transformers.js. */
const suffixes = ["", "_fp16", "_quantized", "_q8", "_int8", "_uint8", "_q4f16", "_q4", "_bnb4"];

const preferred = suffixes.flatMap((suffix) => names.map((name) => `${name}${suffix}.onnx`));

/** @param files names in the `onnx` folder; undefined when there is no such folder. @throws LoadError */
export function chooseOnnxFile(files: readonly string[] | undefined): string {
  if (files === undefined) throw new LoadError(`there is no '${FOLDER}' folder`);
  const present = new Set(files);
  const others = files.filter((file) => /^(?:model|decoder_model_merged)[^/]*\.onnx$/.test(file)).sort();
  const chosen = preferred.find((file) => present.has(file)) ?? others[0];
  if (chosen !== undefined) return `${FOLDER}/${chosen}`;
  if (files.some((file) => /^decoder_(?:with_past_)?model.*\.onnx$/.test(file))) {
    throw new LoadError(
      `'${FOLDER}' holds a decoder in two files; export it as one, such as decoder_model_merged.onnx`,
    );
  }
  throw new LoadError(`'${FOLDER}' holds no ONNX file of a model, such as model.onnx`);
}
