/** Models with `response_cache`, and one without. */
import { INT64, initializer, input, node, output } from "../../infra/tutorial/onnx-file.mjs";
import type { MadeModel } from "../support/fleet/made-model.js";

const CACHED = "response_cache { enable: true }";
const tensor = (name: string, type: string, dims: string, more = "") =>
  `{ name: "${name}" data_type: ${type} dims: ${dims} ${more} }`;

/** Answers with the sum and the difference of its inputs, of any shape of two dimensions. */
const sums = [
  input("A", ["rows", "columns"]),
  input("B", ["rows", "columns"]),
  output("SUM", ["rows", "columns"]),
  output("LESS", ["rows", "columns"]),
  node("Add", ["A", "B"], ["SUM"]),
  node("Sub", ["A", "B"], ["LESS"]),
];
const summing = `input [ ${tensor("A", "TYPE_FP32", "[ -1, -1 ]")}, ${tensor("B", "TYPE_FP32", "[ -1, -1 ]")} ]
output [ ${tensor("SUM", "TYPE_FP32", "[ -1, -1 ]")}, ${tensor("LESS", "TYPE_FP32", "[ -1, -1 ]")} ]`;

/** Picks an element of a list of four: another index is an error of the runtime. */
const picks = [
  input("I", ["batch", 1], INT64),
  output("Y", ["batch", 1]),
  initializer("list", [4], Float32Array.of(10, 11, 12, 13)),
  node("Gather", ["list", "I"], ["Y"]),
];

const names = [input("X", ["batch", 3]), output("Y", ["batch", 3]), node("Identity", ["X"], ["Y"])];
const naming = `max_batch_size: 8
input ${tensor("X", "TYPE_FP32", "3")}
output ${tensor("Y", "TYPE_FP32", "3", 'label_filename: "labels.txt"')}`;

const cachedSums: MadeModel = { graph: sums, config: `${summing}\n${CACHED}` };

export const models: Readonly<Record<string, MadeModel>> = {
  // Several of a kind, so that each test counts the requests of its own.
  sums: cachedSums,
  digested: cachedSums,
  skipped: cachedSums,
  limited: cachedSums,
  changed: cachedSums,
  uncached: { graph: sums, config: summing },
  picks: {
    graph: picks,
    config: `max_batch_size: 4
input ${tensor("I", "TYPE_INT64", "1")}
output ${tensor("Y", "TYPE_FP32", "1")}
${CACHED}`,
  },
  labelled: { graph: names, config: `${naming}\n${CACHED}`, files: { "labels.txt": "cat\ndog\nbird\n" } },
};

/** The same name and version, and another file: the output SUM is the product. */
export const changed: MadeModel = {
  graph: [...sums.slice(0, 4), node("Mul", ["A", "B"], ["SUM"]), node("Sub", ["A", "B"], ["LESS"])],
  config: `${summing}\n${CACHED}`,
};
