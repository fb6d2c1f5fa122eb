/**
 * The only way from a scanned configuration to the served one: completion from the graph, then all
 * checks again.
 */
import type { ModelConfig } from "#shared/model/config.js";
import type { GraphMetadata } from "../onnx/graph.js";
import type { FoundModel } from "./scan.js";
import { completeDefaults, type DirectoryFacts } from "./validate/complete.js";
import { checkConstantNames } from "./validate/constants.js";
import { completeFromGraph, defaultCompletion, type CompletionOptions } from "./validate/from-graph.js";
import { validateAgainstGraph } from "./validate/graph.js";
import { describeInferred } from "./validate/inferred.js";
import { nameStates } from "./validate/state-names.js";
import { validateTensors } from "./validate/tensors.js";
import { validateConfig } from "./validate/validate.js";

/**
 * @param config as `scanRepository` gives it
 * @throws LoadError if the configuration asks for something that Baton cannot serve
 */
export function resolveConfig(
  config: ModelConfig,
  facts: DirectoryFacts,
  graph: GraphMetadata,
  options: CompletionOptions = defaultCompletion,
): ModelConfig {
  checkConstantNames(config, graph);
  const complete = completeDefaults(completeFromGraph(config, graph, options), facts);
  validateConfig(complete, facts.gpus);
  validateTensors(complete);
  validateAgainstGraph(complete, graph);
  return complete;
}

/** The configuration of a scanned model, once the graph is known. */
interface Resolved {
  readonly config: ModelConfig;
  /** The completed fields that the graph gave; undefined if none is of note. */
  readonly inferred: string | undefined;
  readonly warnings: readonly string[];
}

/** @throws LoadError if the configuration asks for something that Baton cannot serve */
export function resolveModel(
  { config, stateNames, facts }: Pick<FoundModel, "config" | "stateNames" | "facts">,
  graph: GraphMetadata,
): Resolved {
  const named = nameStates(config, stateNames, graph);
  const complete = resolveConfig(named.config, facts, graph);
  return { config: complete, inferred: describeInferred(named.config, complete), warnings: named.warnings };
}
