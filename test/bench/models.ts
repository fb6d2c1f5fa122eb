/** The benchmark's models; test/models/make_bench.py made them. */
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeRepository } from "../setup/repository.js";
import { root } from "../setup/root.js";

export interface BenchModel {
  readonly name: string;
  /** Width of X, H, C and Y. */
  readonly size: number;
}

export const large: BenchModel = { name: "lstm-1024", size: 1024 };
export const tiny: BenchModel = { name: "lstm-128", size: 128 };
/** `tiny` without its delay window. */
export const tinyAtOnce: BenchModel = { name: "lstm-128-at-once", size: 128 };

export function modelFile({ size }: BenchModel): string {
  return join(root, "test/models", `lstm-${size}`, "1", "model.onnx");
}

/** A repository of all three. */
export function benchRepository(folder: string): string {
  makeRepository(folder, [large.name, tiny.name]);
  cpSync(join(folder, tiny.name), join(folder, tinyAtOnce.name), { recursive: true });
  const config = join(folder, tinyAtOnce.name, "config.pbtxt");
  const text = readFileSync(config, "utf8")
    .replace(`name: "${tiny.name}"`, `name: "${tinyAtOnce.name}"`)
    .replace(/max_queue_delay_microseconds: \d+/, "max_queue_delay_microseconds: 0");
  writeFileSync(config, text);
  return folder;
}
