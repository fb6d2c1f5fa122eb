/**
 * Finds the inputs of a graph that are states, and for each the output with the state's next value:
 * first by their names, then by shapes that fit only each other.
 */
import type { GraphTensor } from "../../onnx/graph.js";

export interface Pair {
  readonly input: GraphTensor;
  readonly output: GraphTensor;
}

export type Pairing =
  | { readonly kind: "found"; readonly pairs: readonly Pair[] }
  /** Any of these may be states, and not all of them can be. */
  | { readonly kind: "ambiguous"; readonly candidates: readonly Pair[] };

/** Tensors of a graph whose purpose the configuration does not say. */
export interface Unaccounted {
  readonly inputs: readonly GraphTensor[];
  readonly outputs: readonly GraphTensor[];
  /** Whether one of the inputs must remain for clients; false if the configuration has an input. */
  readonly keepInput: boolean;
  /** The same for the outputs. */
  readonly keepOutput: boolean;
  readonly ownDims: OwnDims;
}

/** The dims of a tensor without its batch; undefined if the batch axis is unknown. */
export type OwnDims = (tensor: GraphTensor) => readonly number[] | undefined;

export function pairStates({ inputs, outputs, keepInput, keepOutput, ownDims }: Unaccounted): Pairing {
  let left = { inputs, outputs };
  const pairs: Pair[] = [];
  for (const rule of [isStemPair, isAny]) {
    const found = candidates(left.inputs, left.outputs, rule, ownDims);
    const rest = {
      inputs: left.inputs.filter((input) => !found.some((pair) => pair.input === input)),
      outputs: left.outputs.filter((output) => !found.some((pair) => pair.output === output)),
    };
    const most = Math.min(
      left.inputs.filter(isOrdinary).length - (keepInput ? 1 : 0),
      left.outputs.length - (keepOutput ? 1 : 0),
    );
    // The search never drops a pair whose names match. The same shape alone proves nothing for
    // tensors that have to remain for clients.
    if (most <= 0 && rule !== isStemPair) break;
    const once = new Set(found.flatMap(({ input, output }) => [input, output])).size === 2 * found.length;
    const tooMany = (keepInput && !rest.inputs.some(isOrdinary)) || (keepOutput && rest.outputs.length === 0);
    if (found.length > 0 && (!once || tooMany)) return { kind: "ambiguous", candidates: found };
    pairs.push(...found);
    left = rest;
  }
  return { kind: "found", pairs };
}

type Rule = (input: GraphTensor, output: GraphTensor) => boolean;

function candidates(
  inputs: readonly GraphTensor[],
  outputs: readonly GraphTensor[],
  rule: Rule,
  ownDims: OwnDims,
): Pair[] {
  return inputs.flatMap((input) =>
    outputs
      .filter((output) => rule(input, output) && areCompatible(input, output, ownDims) && !areBare(input, output))
      .map((output) => ({ input, output })),
  );
}

/**
 * Whether the input may be the one that remains for clients. A single number for the whole batch,
 * such as a sampling rate, is not a model's main input.
 */
function isOrdinary({ dims }: GraphTensor): boolean {
  return dims.length > 0;
}

function isStemPair(input: GraphTensor, output: GraphTensor): boolean {
  return isStem(input.name, output.name);
}

const isAny: Rule = () => true;

/** Whether the output may be the input a step later; -1 fits any size. */
export function areCompatible(input: GraphTensor, output: GraphTensor, ownDims: OwnDims): boolean {
  const [own, next] = [ownDims(input), ownDims(output)];
  const [from, to] = own === undefined || next === undefined ? [input.dims, output.dims] : [own, next];
  return (
    input.datatype === output.datatype &&
    from.length === to.length &&
    from.every((dim, axis) => dim === -1 || to[axis] === -1 || dim === to[axis])
  );
}

/**
 * Whether these are names for the data of clients: `input` and `output`, `x` and `y`, numbered or
 * not. Such a pair is not a state.
 */
function areBare(input: GraphTensor, output: GraphTensor): boolean {
  return /^(input|x)[_\d]*$/i.test(input.name) && /^(output|y)[_\d]*$/i.test(output.name);
}

/**
 * The forms of the names that exporters give to a state's input and output. The group is the stem,
 * which both names have.
 */
const forms: readonly (readonly [input: RegExp, output: RegExp])[] = [
  [/^(.+)_in$/i, /^(.+)_out$/i],
  [/^in_(.+)$/i, /^out_(.+)$/i],
  [/^past_(.+)$/i, /^present_(.+)$/i],
  [/^past\.(.+)$/i, /^present\.(.+)$/i],
  [/^past_key_values\.(.+)$/i, /^present\.(.+)$/i],
  [/^prev_(.+)$/i, /^next_(.+)$/i],
  // Only for words that mean a state: `input_ids` and `output_ids` need not belong together.
  [/^input_(.*(?:state|hidden|cell|cache)s?)$/i, /^output_(.+)$/i],
  [/^(.+)0$/i, /^(.+)n$/i],
  // A model may have both `h` with `hn` and `H` with `Hn`.
  [/^(.+)$/, /^(.+)n$/],
  [/^(.+)$/, /^(.+)N$/],
  ...[/^(.+)_out$/i, /^out_(.+)$/i, /^next_(.+)$/i, /^(.+)_next$/i, /^new_(.+)$/i, /^(.+)_new$/i].map(
    (output) => [/^(.+)$/, output] as const,
  ),
];

/** The common part of the names of a state's input and output, in the input's letters. */
export function stemOf(input: string, output: string): string | undefined {
  for (const [ofInput, ofOutput] of forms) {
    const [stem, kept] = [ofInput.exec(input)?.[1], ofOutput.exec(output)?.[1]];
    if (stem === undefined || kept === undefined) continue;
    if (stem === kept || (ofOutput.ignoreCase && stem.toLowerCase() === kept.toLowerCase())) return stem;
  }
  return undefined;
}

/** Whether the names alone show a state. `toke` and `token`, for example, need not be one. */
export function isStem(input: string, output: string): boolean {
  return stemOf(input, output) !== undefined && (input.length === 1 || output !== `${input}n`);
}
