/**
 * Reads from a decoder's graph its inputs and outputs for tokens and caches. Supports the export
 * layout of Hugging Face, and refuses graphs that the engine could not feed.
 */
import type { GraphMetadata, GraphTensor } from "../onnx/graph.js";
import { LoadError } from "../thread/load-error.js";
import type { KvLayout, KvTensor } from "./kv.js";

export interface DecoderLayout {
  readonly kv: KvLayout;
  /** Whether the graph has these inputs. */
  readonly positionIds: boolean;
  readonly attentionMask: boolean;
  /**
   * Name of the input that says how many of the last positions need logits; undefined if the graph
   * has none.
   */
  readonly logitsToKeep: string | undefined;
  /**
   * Whether the graph is a merged export, with an input that switches between a branch with a past
   * and a branch without.
   */
  readonly cacheBranch: boolean;
  readonly logits: "FP32" | "FP16";
  /** Last dimension of the logits; -1 if the graph does not say. */
  readonly vocabSize: number;
}

const KEEP_NAMES = ["num_logits_to_keep", "logits_to_keep"];

/** @throws LoadError that names the unsuitable input or output */
export function layoutOf({ inputs, outputs }: GraphMetadata): DecoderLayout {
  const byName = new Map(inputs.map((input) => [input.name, input]));
  if (!byName.has("input_ids")) throw new LoadError("the graph has no input 'input_ids'");
  const logits = outputs.find(({ name }) => name === "logits");
  if (logits === undefined) throw new LoadError("the graph has no output 'logits'");
  if (logits.datatype !== "FP32" && logits.datatype !== "FP16") {
    throw new LoadError(`output 'logits' is ${logits.datatype}; FP32 or FP16 is needed`);
  }
  const kv = cacheLayout(inputs, outputs);
  const logitsToKeep = KEEP_NAMES.find((name) => byName.has(name));
  const known = new Set(["input_ids", "attention_mask", "position_ids", "use_cache_branch", ...KEEP_NAMES]);
  for (const { past } of kv.tensors) known.add(past);
  for (const { name, datatype } of inputs) {
    if (!known.has(name)) throw new LoadError(`input '${name}' is not one that a decoder of this layout has`);
    const wanted = name === "use_cache_branch" ? "BOOL" : "INT64";
    if (!name.startsWith("past_key_values.") && datatype !== wanted) {
      throw new LoadError(`input '${name}' is ${datatype}; ${wanted} is needed`);
    }
  }
  return {
    kv,
    positionIds: byName.has("position_ids"),
    attentionMask: byName.has("attention_mask"),
    logitsToKeep,
    cacheBranch: byName.has("use_cache_branch"),
    logits: logits.datatype,
    vocabSize: logits.dims.at(-1) ?? -1,
  };
}

function cacheLayout(inputs: readonly GraphTensor[], outputs: readonly GraphTensor[]): KvLayout {
  const pasts = inputs.filter(({ name }) => name.startsWith("past_key_values."));
  const [first] = pasts;
  if (first === undefined) throw new LoadError("the graph has no inputs 'past_key_values.*'; export it with its cache");
  const { datatype } = first;
  if (datatype !== "FP32" && datatype !== "FP16") {
    throw new LoadError(`input '${first.name}' is ${datatype}; FP32 or FP16 is needed`);
  }
  return { datatype, tensors: pasts.map((past) => cacheTensor(past, datatype, outputs)) };
}

function cacheTensor(past: GraphTensor, datatype: string, outputs: readonly GraphTensor[]): KvTensor {
  const name = past.name.replace("past_key_values.", "present.");
  const present = outputs.find((output) => output.name === name);
  if (present === undefined) throw new LoadError(`input '${past.name}' has no output '${name}' to come from`);
  if (past.datatype !== datatype || present.datatype !== datatype) {
    throw new LoadError(`'${past.name}' and '${name}' must both be ${datatype}, as the other caches are`);
  }
  const [, heads = -1, , dim = -1] = past.dims;
  if (past.dims.length !== 4 || heads < 1 || dim < 1) {
    throw new LoadError(
      `input '${past.name}' has the shape [${past.dims.join(", ")}]; [batch, heads, past length, head size] is needed, with heads and head size given`,
    );
  }
  return { past: past.name, present: name, heads, dim };
}
