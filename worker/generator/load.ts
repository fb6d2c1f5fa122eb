/** Loads a generator from its folder: its thread, its tokenizer's thread, and what the fleet is told of it. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { WorkerConfig } from "../config.js";
import { intraOpThreads } from "../model/threads.js";
import type { FoundGenerator } from "../repository/scan.js";
import { startTokenizer } from "../tokenizer/host.js";
import { startGenerator } from "./host.js";
import type { GeneratorOptions } from "./protocol.js";
import type { ServingGenerator } from "./serving.js";

export interface LoadedGenerator {
  readonly kind: "generator";
  readonly serving: ServingGenerator;
  readonly served: ServedModel;
}

const VERSION = "1";
/** OpenAI's limit of `n` is 128; each choice takes a slot. */
const MAX_CHOICES = 128;

/** @throws Error with the reason. @param onFatal one of its threads is of no use any more. */
export async function loadGenerator(
  settings: WorkerConfig,
  folder: FoundGenerator,
  onFatal: (reason: string) => void,
): Promise<LoadedGenerator> {
  const { name, contextLength, vocabSize, eos } = folder;
  const options: GeneratorOptions = {
    modelFile: folder.modelFile,
    providers: settings.BATON_PROVIDERS,
    intraOpThreads: intraOpThreads(settings.BATON_INTRA_OP_THREADS),
    graphOptimization: "all",
    tokenizerFile: folder.tokenizerFile,
    eos,
    contextLength,
    vocabSize,
    kvBytes: settings.BATON_KV_CACHE_BYTES,
    prefillTokens: settings.BATON_PREFILL_TOKENS,
  };
  // A digest takes most of a second for each gigabyte, and the threads load the same files meanwhile.
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
  const maxIdleMs = settings.BATON_CONVERSATION_IDLE_MS;
  const slots = settings.BATON_GENERATOR_SLOTS;
  const kvBytes = settings.BATON_KV_CACHE_BYTES;
  return {
    kind: "generator",
    serving: { name, version: VERSION, contextLength, slots, maxIdleMs, kvBytes, host, tokenizer },
    served: {
      ...described(folder),
      generator: generatorFacts(folder, slots, maxIdleMs),
      digest: digest.value,
    },
  };
}

interface Closable {
  close(): Promise<void>;
}

/** Both threads load at once. @throws what the first of them throws, and the other is closed again */
async function allOrNone<A extends Closable, B extends Closable>(a: Promise<A>, b: Promise<B>): Promise<[A, B]> {
  const both = await Promise.allSettled([a, b]);
  const failed = both.find((one) => one.status === "rejected");
  if (failed === undefined) return [await a, await b];
  for (const one of both) if (one.status === "fulfilled") await one.value.close();
  throw failed.reason;
}

function generatorFacts(
  { contextLength, vocabSize, chatTemplate, defaults }: FoundGenerator,
  slots: number,
  maxIdleMs: number,
): ServedModel["generator"] {
  const maxChoices = Math.min(slots, MAX_CHOICES);
  return { contextLength, vocabSize, chat: chatTemplate !== undefined, maxChoices, maxIdleMs, defaults };
}

/** As a model of Triton's vLLM backend describes itself: text in, text out, any number of responses. */
function described({ name }: FoundGenerator): Omit<ServedModel, "generator" | "digest"> {
  const tensor = (tensorName: string) => ({ name: tensorName, data_type: "TYPE_STRING", dims: [1] });
  const spec = (tensorName: string) => ({ name: tensorName, datatype: "BYTES" as const, dims: [1] });
  return {
    name,
    version: VERSION,
    platform: "onnxruntime_onnx",
    maxBatchSize: 0,
    inputs: [spec("text_input")],
    outputs: [spec("text_output")],
    config: {
      name,
      platform: "onnxruntime_onnx",
      backend: "onnxruntime",
      max_batch_size: 0,
      input: [tensor("text_input")],
      output: [tensor("text_output")],
      model_transaction_policy: { decoupled: true },
    },
  };
}

/** Of what decides the answers: two workers that differ in any of it serve different models under one name. */
async function digestOf(folder: FoundGenerator): Promise<string> {
  const { contextLength, vocabSize, eos, bos, chatTemplate, defaults } = folder;
  const { tokenizerFile, tokenizerConfigFile, modelFile } = folder;
  const facts = [contextLength, vocabSize, eos, bos, chatTemplate, defaults];
  const hash = createHash("sha256").update(JSON.stringify(facts));
  for (const file of [tokenizerFile, tokenizerConfigFile, modelFile]) {
    if (file === undefined) continue;
    for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  }
  return hash.digest("hex");
}
