/** The benchmark's models; test/models/make_bench.py and make_generators.py made them, and infra/models/tale-gpt is the one users meet first. */
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

/** A generator, and what is asked of it: prompts of one length, answers of one length at the most. */
export interface StreamModel {
  readonly name: string;
  /** In the checkout. */
  readonly folder: string;
  readonly promptTokens: number;
  readonly answerTokens: number;
  /** Different prompts; streams take them in turn. */
  readonly prompts: number;
}

/** More prompts than the worker's caches hold (KV_BYTES in streams/suite.ts), so none is known when its turn comes again. */
export const demo: StreamModel = {
  name: "tale-gpt",
  folder: join(root, "infra/models/tale-gpt"),
  promptTokens: 48,
  answerTokens: 128,
  prompts: 128,
};

/** Costs next to nothing: what is measured is everything around it. */
export const cheap: StreamModel = {
  name: "gen-cheap",
  folder: join(root, "test/models/gen-cheap"),
  promptTokens: 32,
  answerTokens: 512,
  prompts: 128,
};

/** Its weights fit in no processor's cache, so a pass over one row costs nearly as much as over a few: what batching is for. */
export const wide: StreamModel = {
  name: "gen-wide",
  folder: join(root, "test/models/gen-wide"),
  promptTokens: 16,
  answerTokens: 96,
  prompts: 48,
};

/** For long histories: its context has 4 096 positions. */
export const long: Pick<StreamModel, "name" | "folder" | "promptTokens"> = {
  name: "gen-mha",
  folder: join(root, "test/models/gen-mha"),
  promptTokens: 32,
};
