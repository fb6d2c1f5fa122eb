/**
 * Reads the bytes that a sequence's states start from, where the configuration names a file for
 * them: `<model>/initial_state/<data_file>`.
 */
import { kserveType, type ModelConfig, type SequenceState } from "#shared/model/config.js";
import { datatypeBytes, elementCount } from "#shared/model/datatype.js";
import { stringFault } from "#shared/model/strings.js";
import { readInside } from "./inside.js";
import { LoadError } from "../thread/load-error.js";

/**
 * Most bytes of one such file. States are copied for every sequence, so a larger one is a mistake.
 */
const MAX_STATE_BYTES = 256 << 20;

/** Raw row-major bytes by the state's `input_name`. A state that is not here starts from zeros. */
export type InitialStates = ReadonlyMap<string, Buffer>;

/** @param root the resolved path of the model's directory @throws LoadError */
export async function readInitialStates(root: string, config: ModelConfig): Promise<InitialStates> {
  const states = new Map<string, Buffer>();
  for (const state of config.sequence_batching?.state ?? []) {
    const file = state.initial_state[0]?.data_file;
    if (file !== undefined) states.set(state.input_name, await readInitialState(root, state, file));
  }
  return states;
}

/** Of a longer file the first bytes are used, but strings must fill their file. */
async function readInitialState(root: string, state: SequenceState, file: string): Promise<Buffer> {
  const { dims } = state.initial_state[0] ?? state;
  const bytes = await readInside(root, `initial_state/${file}`, MAX_STATE_BYTES);
  if (bytes === undefined) throw new LoadError(`initial_state data_file '${file}' does not exist`);
  if (state.data_type === "TYPE_STRING") {
    checkStrings(bytes, elementCount(dims), file);
    return bytes;
  }
  const needed = elementCount(dims) * datatypeBytes[kserveType(state.data_type)];
  if (bytes.length < needed) {
    const has = `the data provided from ${file} only has ${bytes.length} bytes.`;
    throw new LoadError(`initial_state setting expects ${needed} bytes, but ${has}`);
  }
  return bytes.subarray(0, needed);
}

/**
 * Checks that a file holds `count` strings as a BYTES tensor does: each after its length, a
 * little-endian u32.
 */
function checkStrings(bytes: Buffer, count: number, file: string): void {
  let elements = 0;
  for (let at = 0; at < bytes.length; elements++) {
    const from = at + 4;
    if (from > bytes.length) throw new LoadError(`data_file '${file}' ends inside the length of string ${elements}`);
    at = from + bytes.readUInt32LE(at);
    if (at > bytes.length) throw new LoadError(`data_file '${file}' ends inside string ${elements}`);
    const fault = stringFault(bytes.subarray(from, at));
    if (fault !== undefined) throw new LoadError(`string ${elements} of data_file '${file}' ${fault}`);
  }
  if (elements !== count) {
    throw new LoadError(`initial_state setting expects ${count} strings, but data_file '${file}' has ${elements}`);
  }
}
