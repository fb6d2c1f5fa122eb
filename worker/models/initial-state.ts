/**
 * Reads the first bytes of a sequence's states from the files that the configuration names:
 * `<model>/initial_state/<data_file>`.
 */
import { kserveType, type ModelConfig, type SequenceState } from "#shared/model/config.js";
import { datatypeBytes, elementCount } from "#shared/model/datatype.js";
import { stringFault } from "#shared/model/strings.js";
import { readInside } from "./inside.js";
import { LoadError } from "../thread/load-error.js";

/** Most bytes of one such file. Every sequence copies its states, so a larger file is a mistake. */
const MAX_STATE_BYTES = 256 << 20;

/** Raw row-major bytes by the state's `input_name`. All other states start from zeros. */
export type InitialStates = ReadonlyMap<string, Buffer>;

/** The states' bytes, and a sentence for each file that lacks strings. */
interface ReadStates {
  readonly initialStates: InitialStates;
  readonly warnings: readonly string[];
}

/** @param root the resolved path of the model's directory @throws LoadError */
export async function readInitialStates(root: string, config: ModelConfig): Promise<ReadStates> {
  const initialStates = new Map<string, Buffer>();
  const warnings: string[] = [];
  for (const state of config.sequence_batching?.state ?? []) {
    const file = state.initial_state[0]?.data_file;
    if (file === undefined) continue;
    const { bytes, warning } = await readInitialState(root, state, file);
    initialStates.set(state.input_name, bytes);
    if (warning !== undefined) warnings.push(warning);
  }
  return { initialStates, warnings };
}

interface ReadState {
  readonly bytes: Buffer;
  readonly warning?: string;
}

/**
 * Uses the first bytes of a longer file. A file of strings may not have more strings than its
 * state.
 */
async function readInitialState(root: string, state: SequenceState, file: string): Promise<ReadState> {
  const { dims } = state.initial_state[0] ?? state;
  const bytes = await readInside(root, `initial_state/${file}`, MAX_STATE_BYTES);
  if (bytes === undefined) throw new LoadError(`initial_state data_file '${file}' does not exist`);
  if (state.data_type === "TYPE_STRING") return readStrings(bytes, elementCount(dims), file);
  const needed = elementCount(dims) * datatypeBytes[kserveType(state.data_type)];
  if (bytes.length < needed) {
    const has = `the data provided from ${file} only has ${bytes.length} bytes.`;
    throw new LoadError(`initial_state setting expects ${needed} bytes, but ${has}`);
  }
  return { bytes: bytes.subarray(0, needed) };
}

/**
 * Reads a file in the form of a BYTES tensor: each string after its length, a little-endian u32.
 * Triton runs with a file that ends too early, and its own tests have such a file. Missing strings
 * are empty.
 */
function readStrings(bytes: Buffer, count: number, file: string): ReadState {
  let whole = 0;
  let elements = 0;
  for (; whole + 4 <= bytes.length; elements++) {
    const from = whole + 4;
    const end = from + bytes.readUInt32LE(whole);
    if (end > bytes.length) break;
    const fault = stringFault(bytes.subarray(from, end));
    if (fault !== undefined) throw new LoadError(`string ${elements} of data_file '${file}' ${fault}`);
    whole = end;
  }
  const begun = elements + (whole < bytes.length ? 1 : 0);
  if (begun > count) {
    throw new LoadError(`initial_state setting expects ${count} strings, but data_file '${file}' has ${begun}`);
  }
  if (elements === count) return { bytes };
  return {
    bytes: Buffer.concat([bytes.subarray(0, whole), Buffer.alloc(4 * (count - elements))]),
    warning: `initial_state data_file '${file}' has ${elements} whole strings of ${count}: the others begin empty`,
  };
}
