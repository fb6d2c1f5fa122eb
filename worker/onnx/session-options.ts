/**
 * The options of a session that a model's own configuration sets, in the forms that Triton's ONNX
 * backend reads. The configuration wins over the worker's settings, as in Triton.
 */
import type { ModelConfig } from "#shared/model/config.js";
import type { SessionOptions } from "./graph.js";
import { intraOpThreads } from "./thread-count.js";

/** The part of a session's options that does not depend on its device. */
export type ConfiguredOptions = Omit<SessionOptions, "modelFile" | "placement" | "turns">;

/**
 * ONNX Runtime's words for the values of `optimization.graph.level`; any other value means "all".
 */
const graphLevels: Readonly<Record<number, SessionOptions["graphOptimization"]>> = {
  [-1]: "basic",
  1: "extended",
  2: "disabled",
};

/**
 * @param threads the worker's setting for threads inside one operator, 0 for all cores but one
 * @param instances of the model that share the cores
 * @param config whose parameters have been judged (`validate/verdicts.ts`)
 */
export function configuredOptions(
  threads: number,
  instances: number,
  { parameters, optimization }: Pick<ModelConfig, "parameters" | "optimization">,
): ConfiguredOptions {
  const given = (key: string): string | undefined => parameters[key]?.string_value;
  const [mode, arena, pattern] = [given("execution_mode"), given("enable_mem_arena"), given("enable_mem_pattern")];
  return {
    intraOpThreads: intraOpThreads(Number(given("intra_op_thread_count") ?? threads), instances),
    interOpThreads: Number(given("inter_op_thread_count") ?? 0),
    executionMode: mode === undefined ? undefined : executionMode(mode),
    memoryArena: arena === undefined ? undefined : tritonBoolean(arena),
    memoryPattern: pattern === undefined ? undefined : tritonBoolean(pattern),
    graphOptimization: graphLevels[optimization?.graph?.level ?? 0] ?? "all",
  };
}

/** @returns undefined for a text that Triton refuses */
export function executionMode(text: string): SessionOptions["executionMode"] {
  if (/^0+$/.test(text)) return "sequential";
  return /^0*1$/.test(text) ? "parallel" : undefined;
}

/** Reads a boolean as Triton's backends do. @returns undefined for a text that they refuse */
export function tritonBoolean(text: string): boolean | undefined {
  const word = text.toLowerCase();
  if (["true", "on", "1"].includes(word)) return true;
  return ["false", "off", "0"].includes(word) ? false : undefined;
}
