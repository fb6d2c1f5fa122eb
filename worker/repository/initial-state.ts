/** The bytes that a sequence's states start from, where they come from a file; `<model>/initial_state/<data_file>`. */
import { kserveType, type ModelConfig, type SequenceState } from "#shared/model/config.js";
import { datatypeBytes, elementCount } from "#shared/model/datatype.js";
import { readInside } from "./inside.js";
import { LoadError } from "./load-error.js";

/** States are copied for every sequence; one beyond this is a mistake. */
const MAX_STATE_BYTES = 256 << 20;

/** Raw row-major bytes by the state's `input_name`. A state that is not here starts from zeros. */
export type InitialStates = ReadonlyMap<string, Buffer>;

/** @param root the model's directory, resolved. @throws LoadError */
export async function readInitialStates(root: string, config: ModelConfig): Promise<InitialStates> {
  const states = new Map<string, Buffer>();
  for (const state of config.sequence_batching?.state ?? []) {
    const file = state.initial_state[0]?.data_file;
    if (file !== undefined) states.set(state.input_name, await readInitialState(root, state, file));
  }
  return states;
}

/** A longer file is read as far as it is needed; a string state has no size of its own and takes the whole file. */
async function readInitialState(root: string, state: SequenceState, file: string): Promise<Buffer> {
  const { dims } = state.initial_state[0] ?? state;
  const bytes = await readInside(root, `initial_state/${file}`, MAX_STATE_BYTES);
  if (bytes === undefined) throw new LoadError(`initial_state data_file '${file}' does not exist`);
  if (state.data_type === "TYPE_STRING") return bytes;
  const needed = elementCount(dims) * datatypeBytes[kserveType(state.data_type)];
  if (bytes.length < needed) {
    const has = `the data provided from ${file} only has ${bytes.length} bytes.`;
    throw new LoadError(`initial_state setting expects ${needed} bytes, but ${has}`);
  }
  return bytes.subarray(0, needed);
}
