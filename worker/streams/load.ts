/**
 * Loads a generator from its folder: the engine's thread, the tokenizer's thread, and the
 * announcement to the fleet.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { Placement } from "../onnx/providers.js";
import { intraOpThreads } from "../onnx/thread-count.js";
import type { GeneratorTensors, TextTensor } from "../models/generator-config.js";
import type { TurnMemory } from "../onnx/turns.js";
import type { FoundGenerator } from "../models/scan.js";
import { startTokenizer, type TokenizerHost } from "../tokenizer/host.js";
import { startGenerator, type GeneratorHost } from "./host.js";
import type { GeneratorOptions } from "../engine/protocol.js";

/** A loaded generator, as its lanes use it. */
export interface ServingGenerator {
  readonly name: string;
  readonly version: string;
  /** Most tokens of a prompt and its output together. */
  readonly contextLength: number;
  /** The model's tokens are the numbers below this one. */
  readonly vocabSize: number;
  /** Most choices of new requests to generate at once. Further requests wait in the queue. */
  readonly slots: number;
  /** How long a conversation stays between its turns, in ms. */
  readonly maxIdleMs: number;
  /** Memory for cached keys and values, in bytes. */
  readonly kvBytes: number;
  readonly host: GeneratorHost;
  readonly tokenizer: TokenizerHost;
}

export interface LoadedGenerator {
  readonly kind: "generator";
  readonly serving: ServingGenerator;
  readonly served: ServedModel;
}

/** The worker's settings for generators. */
export interface GeneratorSettings {
  readonly placement: Placement;
  /** The memory by which threads take turns at a GPU. */
  readonly turns: TurnMemory;
  /** The share by which a GPU's logits may differ from the CPU's; undefined for the default. */
  readonly tolerance: number | undefined;
  /** Threads inside one operator; 0 stands for all cores but one. */
  readonly intraOpThreads: number;
  /** Most choices of new requests to generate at once. */
  readonly slots: number;
  /** Memory for cached keys and values, in bytes. */
  readonly kvBytes: number;
  /** Prompt tokens that one iteration computes beside the running streams. */
  readonly prefillTokens: number;
  /** How long a conversation stays between its turns, in ms. */
  readonly maxIdleMs: number;
}

/** A generator's folder has one version. */
const VERSION = "1";
/**
 * The most choices in one request, as in OpenAI's API, whose `n` is at most 128. Each choice takes
 * a slot.
 */
const MAX_CHOICES = 128;

/**
 * @param onFatal runs when a thread of the generator has failed for good
 * @throws Error with the reason if the generator cannot load
 */
export async function loadGenerator(
  settings: GeneratorSettings,
  folder: FoundGenerator,
  onFatal: (reason: string) => void,
): Promise<LoadedGenerator> {
  const { name, contextLength, vocabSize, eos } = folder;
  const { slots, kvBytes, maxIdleMs } = settings;
  const options: GeneratorOptions = {
    modelFile: folder.modelFile,
    placement: settings.placement,
    turns: settings.turns,
    tolerance: settings.tolerance,
    intraOpThreads: intraOpThreads(settings.intraOpThreads, 1),
    graphOptimization: "all",
    tokenizerFile: folder.tokenizerFile,
    eos,
    contextLength,
    vocabSize,
    kvBytes,
    prefillTokens: settings.prefillTokens,
  };
  // The digest takes most of a second per gigabyte, so it runs while the threads load the same
  // files.
  const [threads, digest] = await Promise.allSettled([
    allOrNone(startTokenizer(folder, onFatal), startGenerator(options, onFatal)),
    digestOf(folder),
  ]);
  if (threads.status === "rejected") throw threads.reason;
  const [tokenizer, host] = threads.value;
  if (digest.status === "rejected") {
    await Promise.all([tokenizer.close(), host.close()]);
    throw digest.reason;
  }
  const warnings = [...folder.warnings, ...host.facts.warnings];
  return {
    kind: "generator",
    serving: { name, version: VERSION, contextLength, vocabSize, slots, maxIdleMs, kvBytes, host, tokenizer },
    served: {
      ...described(folder),
      generator: generatorFacts(folder, slots, maxIdleMs),
      takes: slots,
      digest: digest.value,
      ...(warnings.length > 0 && { warnings }),
    },
  };
}

interface Closable {
  close(): Promise<void>;
}

/**
 * Waits for both.
 * @throws the error of the first that failed; the other is closed again by then
 */
async function allOrNone<A extends Closable, B extends Closable>(a: Promise<A>, b: Promise<B>): Promise<[A, B]> {
  const both = await Promise.allSettled([a, b]);
  const failed = both.find((one) => one.status === "rejected");
  if (failed === undefined) return [await a, await b];
  for (const one of both) if (one.status === "fulfilled") await one.value.close();
  throw failed.reason;
}

function generatorFacts(
  { contextLength, vocabSize, chatTemplate, defaults, tensors }: FoundGenerator,
  slots: number,
  maxIdleMs: number,
): ServedModel["generator"] {
  const maxChoices = Math.min(slots, MAX_CHOICES);
  const chat = chatTemplate !== undefined;
  const named = tensors !== undefined && { namesText: true };
  return { contextLength, vocabSize, chat, maxChoices, maxIdleMs, defaults, ...named };
}

/**
 * Describes the model. Without tensors in its configuration, the model looks like a model of
 * Triton's vLLM backend: it takes text, and answers with any number of texts.
 */
function described({ name, tensors = usualTensors }: FoundGenerator): Omit<ServedModel, "generator" | "digest"> {
  const { input, output, maxBatchSize } = tensors;
  const tensor = ({ name, dims }: TextTensor) => ({ name, data_type: "TYPE_STRING", dims });
  const spec = ({ name, dims }: TextTensor) => ({ name, datatype: "BYTES" as const, dims: [...dims] });
  return {
    name,
    version: VERSION,
    platform: "onnxruntime_onnx",
    maxBatchSize,
    inputs: [spec(input)],
    outputs: [spec(output)],
    config: {
      name,
      platform: "onnxruntime_onnx",
      backend: "onnxruntime",
      max_batch_size: maxBatchSize,
      input: [tensor(input)],
      output: [tensor(output)],
      model_transaction_policy: { decoupled: true },
    },
  };
}

const usualTensors: GeneratorTensors = {
  maxBatchSize: 0,
  input: { name: "text_input", dims: [1] },
  output: { name: "text_output", dims: [1] },
};

/**
 * @returns a digest of all facts that decide the answers. Two workers that differ in a fact serve
 * different models under one name.
 */
async function digestOf(folder: FoundGenerator): Promise<string> {
  const { contextLength, vocabSize, eos, bos, chatTemplate, defaults, tensors } = folder;
  const { tokenizerFile, tokenizerConfigFile, modelFile } = folder;
  const facts = [
    contextLength,
    vocabSize,
    eos,
    bos,
    chatTemplate,
    defaults,
    ...(tensors === undefined ? [] : [tensors]),
  ];
  const hash = createHash("sha256").update(JSON.stringify(facts));
  for (const file of [tokenizerFile, tokenizerConfigFile, modelFile]) {
    if (file === undefined) continue;
    for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  }
  return hash.digest("hex");
}
