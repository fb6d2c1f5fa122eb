/**
 * Finds the tensors of a state with one name for both, as tutorials write it. The name is the
 * common part of the names of input and output.
 */
import type { ModelConfig, SequenceState } from "#shared/model/config.js";
import type { GraphMetadata } from "../../onnx/graph.js";
import { LoadError } from "../../thread/load-error.js";
import { withBeginning } from "./infer.js";
import { stemOf } from "./pairs.js";

/** A state's tensors, and the common part of their names. */
export interface StemPair {
  readonly stem: string;
  readonly input: string;
  readonly output: string;
}

/** Every pair of an input and an output whose names have a stem in common. */
export function stemPairs(inputs: readonly string[], outputs: readonly string[]): StemPair[] {
  return inputs.flatMap((input) =>
    outputs.flatMap((output) => {
      const stem = stemOf(input, output);
      return stem === undefined ? [] : [{ stem, input, output }];
    }),
  );
}

/** A configuration whose states all have the names of their tensors. */
interface Named {
  readonly config: ModelConfig;
  readonly warnings: readonly string[];
}

/**
 * Replaces such names by the names of the graph's tensors. A name stands for the pair with that
 * stem. If there is none, the name stands for all pairs whose stems begin with the name and a `_`:
 * `lstm_state` for `lstm_state_h` and `lstm_state_c`.
 *
 * @param names names of the states with one name for both tensors
 * @throws LoadError if the graph has no such pair, or several outputs for one input, or if a state
 *   of variable size has no first value
 */
export function nameStates(config: ModelConfig, names: ReadonlySet<string>, graph: GraphMetadata): Named {
  const sequence = config.sequence_batching;
  if (sequence === undefined || names.size === 0) return { config, warnings: [] };
  const explicit = sequence.state.filter(({ input_name: name }) => !names.has(name));
  const taken = new Set([
    ...config.input.map(({ name }) => name),
    ...sequence.control_input.map(({ name }) => name),
    ...explicit.map(({ input_name: name }) => name),
  ]);
  const givenOut = new Set(explicit.map(({ output_name: name }) => name));
  const inputs = graph.inputs.map(({ name }) => name).filter((name) => !taken.has(name));
  const outputs = graph.outputs.map(({ name }) => name).filter((name) => !givenOut.has(name));
  // A state's output may be an answer, too, but errors first propose outputs that are not.
  const answers = new Set(config.output.map(({ name }) => name));
  const pairs = stemPairs(inputs, outputs);
  const warnings: string[] = [];
  const state = sequence.state.flatMap((one, index): SequenceState[] => {
    if (!names.has(one.input_name)) return [one];
    const found = pairsOf(one, pairs, { inputs, outputs: outputs.filter((name) => !answers.has(name)) });
    const becomes = found.map(({ input, output }) => `input_name: "${input}" output_name: "${output}"`).join(" and ");
    warnings.push(`sequence_batching.state[${index}].name: "${one.input_name}" is read as ${becomes}`);
    return found.map(({ input, output }) => withBeginning({ ...one, input_name: input, output_name: output }, ""));
  });
  return { config: { ...config, sequence_batching: { ...sequence, state } }, warnings };
}

function pairsOf(
  state: SequenceState,
  pairs: readonly StemPair[],
  left: { readonly inputs: readonly string[]; readonly outputs: readonly string[] },
): readonly StemPair[] {
  const { input_name: name } = state;
  const own = pairs.filter(({ stem, input }) => stem === name || input === name);
  const found = own.length > 0 ? own : pairs.filter(({ stem }) => stem.startsWith(`${name}_`));
  if (found.length === 0) {
    throw new LoadError(
      `state '${name}' finds no input and output of the model, such as '${name}_in' and '${name}_out': ` +
        `write ${blockOf(state, left.inputs.join(" or "), left.outputs.join(" or "))}`,
    );
  }
  const isOnce = (side: "input" | "output") => new Set(found.map((pair) => pair[side])).size === found.length;
  if (!isOnce("input") || !isOnce("output")) {
    const all = found.map(({ input, output }) => `'${input}' with '${output}'`).join(", ");
    const [{ input, output } = { input: "", output: "" }] = found;
    throw new LoadError(`state '${name}' may be ${all}: write which, as in ${blockOf(state, input, output)}`);
  }
  return found;
}

function blockOf({ data_type, dims }: SequenceState, input: string, output: string): string {
  return `state { input_name: "${input}" output_name: "${output}" data_type: ${data_type} dims: [ ${dims.join(", ")} ] }`;
}
