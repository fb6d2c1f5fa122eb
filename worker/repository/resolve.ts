/** The one way from a scanned configuration to the one that is served: complete from the graph, then validate all of it again. */
import type { ModelConfig } from "#shared/model/config.js";
import {
  completeDefaults,
  completeFromGraph,
  defaultCompletion,
  type CompletionOptions,
  type DirectoryFacts,
  type GraphMetadata,
} from "./complete.js";
import { validateAgainstGraph } from "./validate-graph.js";
import { validateTensors } from "./validate-tensors.js";
import { validateConfig } from "./validate.js";

/** @param config as `scanRepository` gives it. @throws LoadError */
export function resolveConfig(
  config: ModelConfig,
  facts: DirectoryFacts,
  graph: GraphMetadata,
  options: CompletionOptions = defaultCompletion,
): ModelConfig {
  const complete = completeDefaults(completeFromGraph(config, graph, options), facts);
  validateConfig(complete, facts.gpus);
  validateTensors(complete);
  validateAgainstGraph(complete, graph);
  return complete;
}
