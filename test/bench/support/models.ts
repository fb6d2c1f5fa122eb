/**
 * The benchmark's models. test/fixtures/models/make_bench.py and make_generators.py made the
 * models; users meet infra/models/tale-gpt first.
 */
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeRepository } from "../../support/fleet/repository.js";
import { root } from "../../support/fleet/root.js";

export interface BenchModel {
  readonly name: string;
  /** Width of the tensors X, H, C and Y. */
  readonly size: number;
}

export const large: BenchModel = { name: "lstm-1024", size: 1024 };
export const tiny: BenchModel = { name: "lstm-128", size: 128 };
/** `tiny` without its delay window for batches. */
export const tinyAtOnce: BenchModel = { name: "lstm-128-at-once", size: 128 };
/** `tiny` on a simulated device: each run takes so many ms, and hardly any CPU. */
export const device: BenchModel = { name: "lstm-128-device", size: 128 };
export const DEVICE_RUN_MS = 20;
export const DEVICE_BATCH = 64;

export function modelFile({ size }: BenchModel): string {
  return join(root, "test/fixtures/models", `lstm-${size}`, "1", "model.onnx");
}

/** Makes a repository of all tensor models. */
export function benchRepository(folder: string): string {
  makeRepository(folder, [large.name, tiny.name]);
  const likeTiny = ({ name }: BenchModel, change: (config: string) => string) => {
    cpSync(join(folder, tiny.name), join(folder, name), { recursive: true });
    const config = join(folder, name, "config.pbtxt");
    writeFileSync(config, change(readFileSync(config, "utf8").replace(`name: "${tiny.name}"`, `name: "${name}"`)));
  };
  likeTiny(tinyAtOnce, (config) =>
    config.replace(/max_queue_delay_microseconds: \d+/, "max_queue_delay_microseconds: 0"),
  );
  const parameter = `parameters { key: "execute_delay_ms" value { string_value: "${DEVICE_RUN_MS}" } }`;
  likeTiny(device, (config) => {
    return `${config.replace(/max_batch_size: \d+/, `max_batch_size: ${DEVICE_BATCH}`)}\n${parameter}\n`;
  });
  return folder;
}

/** A generator, and its requests: prompts of equal length, and answers up to a given length. */
export interface StreamModel {
  readonly name: string;
  /** The model's folder in the checkout. */
  readonly folder: string;
  readonly promptTokens: number;
  readonly answerTokens: number;
  /** How many different prompts there are. Streams take them in turn. */
  readonly prompts: number;
}

/**
 * The demo model has more prompts than the worker's caches hold (KV_BYTES in streams/suite.ts), so
 * no cache knows a prompt when its turn comes again.
 */
export const demo: StreamModel = {
  name: "tale-gpt",
  folder: join(root, "infra/models/tale-gpt"),
  promptTokens: 48,
  answerTokens: 128,
  prompts: 128,
};

/**
 * This model computes next to nothing, so the measurement shows the cost of everything around it.
 */
export const cheap: StreamModel = {
  name: "gen-cheap",
  folder: join(root, "test/fixtures/models/gen-cheap"),
  promptTokens: 32,
  answerTokens: 512,
  prompts: 128,
};

/**
 * The weights of this model fit in no processor's cache, so a pass over a few rows costs hardly
 * more than over a single row. Batching exists for such models.
 */
export const wide: StreamModel = {
  name: "gen-wide",
  folder: join(root, "test/fixtures/models/gen-wide"),
  promptTokens: 16,
  answerTokens: 96,
  prompts: 48,
};

/** For long histories: the context has 4,096 positions. */
export const long: Pick<StreamModel, "name" | "folder" | "promptTokens"> = {
  name: "gen-mha",
  folder: join(root, "test/fixtures/models/gen-mha"),
  promptTokens: 32,
};
