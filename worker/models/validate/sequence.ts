/** Checks `sequence_batching`: its controls, its strategy, its states and their first values. */
import type {
  InitialState,
  ModelConfig,
  SequenceBatching,
  SequenceControl,
  SequenceState,
} from "#shared/model/config.js";
import { LoadError } from "../../thread/load-error.js";
import { isCountable } from "./tensors.js";

const corridTypes = ["TYPE_UINT64", "TYPE_INT64", "TYPE_UINT32", "TYPE_INT32", "TYPE_STRING"] as const;
const booleanKinds = ["CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_READY"] as const;
const valueLists = ["int32_false_true", "fp32_false_true", "bool_false_true"] as const;

/** @throws LoadError */
export function validateSequenceBatching(config: ModelConfig, batching: SequenceBatching): void {
  const { name } = config;
  if (config.response_cache?.enable === true) {
    const scope = "with sequence batching scheduler";
    throw new LoadError(
      `Response Cache does not currently support model ${name} ${scope}. Please disable the response cache.`,
    );
  }
  validateControls(name, batching);
  validateStrategy(config, batching);
  const seen = new Set<string>();
  for (const state of batching.state) {
    validateState(name, state);
    if (seen.has(state.input_name)) {
      throw new LoadError(`State input name '${state.input_name}' specified more than once.`);
    }
    seen.add(state.input_name);
  }
}

function validateControls(model: string, { control_input }: SequenceBatching): void {
  const tensors = new Set<string>();
  for (const { name } of control_input) {
    if (name === "") throw new LoadError(`sequence batching control tensor must have a name for ${model}`);
    if (tensors.has(name)) {
      const twice = "is specified for multiple control kinds";
      throw new LoadError(`sequence batching control tensor '${name}' ${twice} for ${model}`);
    }
    tensors.add(name);
  }
  const controls = control_input.flatMap(({ control }) => control);
  for (const kind of [...booleanKinds, "CONTROL_SEQUENCE_CORRID"] as const) {
    const [control, second] = controls.filter((one) => one.kind === kind);
    if (second !== undefined) throw new LoadError(`sequence batching specifies multiple ${kind} tensors for ${model}`);
    if (control === undefined) continue;
    if (kind === "CONTROL_SEQUENCE_CORRID") validateCorrid(model, control);
    else validateBoolean(model, control);
  }
}

function validateBoolean(model: string, control: SequenceControl): void {
  const scope = `for ${control.kind} for ${model}`;
  const [list, second] = valueLists.filter((name) => control[name].length > 0);
  if (list === undefined) {
    const choices = "'int32_false_true', 'fp32_false_true' or 'bool_false_true'";
    throw new LoadError(`sequence batching must specify either ${choices} ${scope}`);
  }
  if (second !== undefined) {
    const choices = "'int32_false_true', 'fp32_false_true' and 'bool_false_true'";
    throw new LoadError(`sequence batching specifies more than one from ${choices} ${scope}`);
  }
  if (control[list].length !== 2) {
    throw new LoadError(`sequence batching control '${list}' must have exactly 2 entries ${scope}`);
  }
}

function validateCorrid(model: string, control: SequenceControl): void {
  if (valueLists.some((name) => control[name].length > 0)) {
    const choices = "'int32_false_true', 'fp32_false_true' or 'bool_false_true'";
    throw new LoadError(`sequence batching must not specify either ${choices} for ${control.kind} for ${model}`);
  }
  if (!corridTypes.some((type) => type === control.data_type)) {
    const allowed = "Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING";
    throw new LoadError(`unexpected data type for control ${control.kind} for ${model}. ${allowed}`);
  }
}

function validateStrategy({ name, max_batch_size }: ModelConfig, { oldest, direct }: SequenceBatching): void {
  for (const size of oldest?.preferred_batch_size ?? []) {
    if (size <= 0) throw new LoadError(`sequence batching preferred batch size must be positive for ${name}`);
    if (size > max_batch_size) {
      throw new LoadError(`sequence batching preferred batch size must be <= max batch size for ${name}`);
    }
  }
  const utilization = direct?.minimum_slot_utilization ?? 0;
  if (!(utilization >= 0 && utilization <= 1)) {
    throw new LoadError(`sequence batching minimum slot utilization must be in range (0.0, 1.0] for ${name}`);
  }
}

function validateState(model: string, state: SequenceState): void {
  const { input_name: input } = state;
  if (input === "" || state.output_name === "") {
    throw new LoadError(`sequence batching state must specify 'input_name' and 'output_name' for ${model}`);
  }
  if (state.data_type === "TYPE_INVALID") throw new LoadError(`state '${input}' must specify 'data_type' for ${model}`);
  if (state.dims.length === 0) throw new LoadError(`state '${input}' must specify 'dims' for ${model}`);
  if (state.dims.some((dim) => dim < 1 && dim !== -1)) {
    const variable = "or -1 to indicate a variable-size dimension";
    throw new LoadError(`state '${input}' dimension must be integer >= 1, ${variable} for ${model}`);
  }
  if (!isCountable(state.dims))
    throw new LoadError(`state '${input}' has more elements than can be counted for ${model}`);
  if (state.initial_state.length > 1) {
    const found = `Found '${state.initial_state.length}' elements.`;
    throw new LoadError(
      `initial_state field for state input '${input}' must contain exactly one or zero element. ${found}`,
    );
  }
  for (const initial of state.initial_state) validateInitialState(state, initial);
}

function validateInitialState({ input_name: input, data_type, dims }: SequenceState, initial: InitialState): void {
  if (initial.data_type !== data_type) {
    throw new LoadError(
      `The data type used for 'initial_state' field of state '${input}' does not match the state data type.`,
    );
  }
  if (initial.name === "") {
    throw new LoadError(`Field 'name' must be set when using initial_state for state input '${input}'.`);
  }
  if (initial.dims.length !== dims.length) {
    const which = `doesn't match the size of 'state' dimensions for state input '${input}'`;
    throw new LoadError(`Number of dimensions in 'initial_state' ${which}. ${initial.dims.length} != ${dims.length}`);
  }
  for (const [axis, dim] of initial.dims.entries()) {
    const wanted = dims[axis];
    if (dim < 0) {
      throw new LoadError(`'initial_state' field for state input name '${input}' contains variable dimensions.`);
    }
    if (wanted !== -1 && dim !== wanted) {
      const differs = `doesn't match 'state' dim description. ${dim} != ${wanted}`;
      throw new LoadError(`'initial_state' dim for input name '${input}' ${differs}`);
    }
  }
  if (initial.zero_data === undefined && initial.data_file === undefined) {
    throw new LoadError(`initial_state setting expects state '${input}' to have state_data set`);
  }
}
