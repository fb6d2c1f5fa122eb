/**
 * How Baton treats each field of a ModelConfig. Baton ignores no field in silence. If ignoring a
 * field could change an answer, the admission of requests, or a promise about time or device, Baton
 * refuses a model that sets the field. If ignoring a field changes no answer, Baton warns. A test
 * compares this table with the schema, so that a new field needs a verdict.
 */
import { executionMode, tritonBoolean } from "../../onnx/session-options.js";

type Decision =
  /** Baton reads and obeys the field. The checks beside this file refuse bad values. */
  | { readonly kind: "obeyed"; readonly why?: string }
  /** No value of the field needs any work here. */
  | { readonly kind: "needless"; readonly why: string }
  /** `why` completes "<field> is not supported: ...". */
  | { readonly kind: "refused"; readonly why: string; readonly allowed?: (value: unknown) => boolean }
  /** `why` completes "<field> has no effect: ...". */
  | { readonly kind: "warned"; readonly why: string; readonly allowed?: (value: unknown) => boolean };

/** The verdict on a field with all fields inside it. A field's default value needs no verdict. */
export class Verdict {
  readonly decision: Decision;

  constructor(decision: Decision) {
    this.decision = decision;
  }
}

/** The verdicts on the fields of a message, by name. */
export interface Verdicts {
  readonly [field: string]: Verdict | Verdicts;
}

const obeyed = new Verdict({ kind: "obeyed" });
/** Obeyed if `allowed` says so, and refused otherwise. */
const checked = (why: string, allowed: (value: unknown) => boolean): Verdict =>
  new Verdict({ kind: "refused", why, allowed });
const needless = (why: string): Verdict => new Verdict({ kind: "needless", why });
const refused = (why: string): Verdict => new Verdict({ kind: "refused", why });
const warned = (why: string, allowed?: (value: unknown) => boolean): Verdict =>
  new Verdict({ kind: "warned", why, ...(allowed && { allowed }) });

const onlyGpu = "it tunes copies to and from a GPU, and changes no answer";
const inStreams = new Verdict({
  kind: "obeyed",
  why: "for the requests of a stream of gRPC, whose client sees the order",
});

const rateLimiter: Verdicts = {
  resources: warned("no rate limiter runs, as in Triton unless it is turned on"),
  priority: warned("no rate limiter runs, as in Triton unless it is turned on"),
};

const instanceGroup: Verdicts = {
  name: obeyed,
  kind: obeyed,
  count: obeyed,
  rate_limiter: rateLimiter,
  gpus: obeyed,
  secondary_devices: warned("they are for TensorRT alone"),
  profile: obeyed,
  passive: refused("every instance is given work"),
  host_policy: warned("pin the worker's process instead, as with numactl"),
};

const optimization: Verdicts = {
  graph: { level: obeyed },
  priority: warned("ONNX Runtime knows no priorities"),
  cuda: {
    graphs: warned(onlyGpu),
    busy_wait_events: warned(onlyGpu),
    graph_spec: warned(onlyGpu),
    output_copy_stream: warned(onlyGpu),
  },
  execution_accelerators: {
    gpu_execution_accelerator: refused("remove it, and name execution providers in BATON_PROVIDERS"),
    cpu_execution_accelerator: refused("remove it, and name execution providers in BATON_PROVIDERS"),
  },
  input_pinned_memory: { enable: needless("Triton's default; it changes how tensors are copied to a GPU") },
  output_pinned_memory: { enable: needless("Triton's default; it changes how tensors are copied from a GPU") },
  gather_kernel_buffer_threshold: warned(onlyGpu),
  eager_batching: warned("a batch is closed when the model can take it"),
};

const queuePolicy: Verdicts = {
  timeout_action: obeyed,
  default_timeout_microseconds: obeyed,
  allow_timeout_override: obeyed,
  max_queue_size: obeyed,
};

const dynamicBatching: Verdicts = {
  preferred_batch_size: obeyed,
  max_queue_delay_microseconds: obeyed,
  preserve_ordering: inStreams,
  priority_levels: obeyed,
  // Without levels, these two have no effect: see `judgeLevels` in judge.ts.
  default_priority_level: obeyed,
  default_queue_policy: queuePolicy,
  priority_queue_policy: queuePolicy,
};

const sequenceBatching: Verdicts = {
  direct: { max_queue_delay_microseconds: obeyed, minimum_slot_utilization: obeyed },
  oldest: {
    max_candidate_sequences: obeyed,
    preferred_batch_size: obeyed,
    max_queue_delay_microseconds: obeyed,
    preserve_ordering: inStreams,
  },
  max_sequence_idle_microseconds: obeyed,
  control_input: {
    name: obeyed,
    control: {
      kind: obeyed,
      int32_false_true: obeyed,
      fp32_false_true: obeyed,
      bool_false_true: obeyed,
      data_type: obeyed,
    },
  },
  state: {
    input_name: obeyed,
    output_name: obeyed,
    data_type: obeyed,
    dims: obeyed,
    initial_state: { data_type: obeyed, dims: obeyed, zero_data: obeyed, data_file: obeyed, name: obeyed },
    use_same_buffer_for_input_output: warned("a state is kept only once its step has been committed"),
    use_growable_memory: warned("it is for states on a GPU"),
  },
  iterative_sequence: new Verdict({ kind: "obeyed", why: "with the parameters iterate_while and feed:<output>" }),
};

const input: Verdicts = {
  name: obeyed,
  data_type: obeyed,
  format: needless("Triton checks no more of it than that there are three dims, and so does Baton"),
  dims: obeyed,
  reshape: obeyed,
  is_shape_tensor: obeyed,
  allow_ragged_batch: obeyed,
  optional: obeyed,
  is_non_linear_format_io: obeyed,
};

const output: Verdicts = {
  name: obeyed,
  data_type: obeyed,
  dims: obeyed,
  reshape: obeyed,
  label_filename: obeyed,
  is_shape_tensor: obeyed,
  is_non_linear_format_io: obeyed,
};

export const verdicts: Verdicts = {
  name: obeyed,
  platform: obeyed,
  backend: obeyed,
  runtime: warned("ONNX Runtime for Node runs every model"),
  version_policy: { latest: { num_versions: obeyed }, all: obeyed, specific: { versions: obeyed } },
  max_batch_size: obeyed,
  input,
  output,
  batch_input: obeyed,
  batch_output: obeyed,
  optimization,
  dynamic_batching: dynamicBatching,
  sequence_batching: sequenceBatching,
  ensemble_scheduling: {
    step: {
      model_name: obeyed,
      model_version: obeyed,
      input_map: obeyed,
      output_map: obeyed,
      model_namespace: refused("all models of a worker have one namespace"),
    },
    max_inflight_requests: new Verdict({
      kind: "obeyed",
      why: "the answers of a decoupled step that wait for the steps behind it; 16 by default",
    }),
  },
  instance_group: instanceGroup,
  default_model_filename: obeyed,
  // Elsewhere load-version.ts warns of it.
  cc_model_filenames: new Verdict({ kind: "obeyed", why: "on CUDA and TensorRT; elsewhere Baton warns of it" }),
  metric_tags: obeyed,
  parameters: obeyed,
  model_warmup: obeyed,
  model_operations: { op_library_filename: refused("custom operators are not loaded; use ONNX Runtime's own") },
  model_transaction_policy: { decoupled: obeyed },
  model_repository_agents: {
    agents: refused("no agent checks or changes the model's files; have that done before they are put there"),
  },
  // `validateConfig` and `validateSequenceBatching` refuse it in Triton's words.
  response_cache: { enable: new Verdict({ kind: "obeyed", why: "as in Triton, by models without sequences alone" }) },
  // Another family than FIRST_RESPONSE has no effect: see `judgeMetrics` in judge.ts.
  model_metrics: { metric_control: obeyed },
};

const tensorRt = "it is for TensorRT alone";
const isOne = (value: unknown): boolean => value === 1;
const ownEngine = "Baton's own engine runs every generator";
const ownBatches = "a generator runs all the requests that it has together";

/**
 * The verdicts on a generator's configuration. The folder's other files have all other settings.
 */
export const generatorVerdicts: Verdicts = {
  ...verdicts,
  platform: warned(ownEngine, (platform) => platform === "onnxruntime_onnx"),
  backend: warned(ownEngine, (backend) => backend === "onnxruntime"),
  version_policy: warned("a generator's folder has one version"),
  input: {
    ...input,
    format: refused("a text is no image"),
    reshape: refused("a text has one shape"),
    is_shape_tensor: refused(tensorRt),
    allow_ragged_batch: refused("a generator runs texts of any lengths together"),
    optional: refused("a request of a generator has a text"),
    is_non_linear_format_io: refused(tensorRt),
  },
  output: {
    ...output,
    reshape: refused("a text has one shape"),
    label_filename: needless("a text has no classes, so a request for them is refused"),
    is_shape_tensor: refused(tensorRt),
    is_non_linear_format_io: refused(tensorRt),
  },
  instance_group: {
    ...instanceGroup,
    count: warned("each worker runs one instance of a generator: start more workers instead", isOne),
    gpus: warned(
      "each worker runs one instance of a generator: start a worker for each GPU",
      (gpus) => Array.isArray(gpus) && gpus.length === 1,
    ),
  },
  max_batch_size: warned("a request has one text, and more of them run together anyway", isOne),
  batch_input: refused("a generator takes texts, and no tensors"),
  batch_output: refused("a generator gives texts, and no tensors"),
  optimization: warned(ownEngine),
  dynamic_batching: warned(ownBatches),
  sequence_batching: refused("a conversation is a sequence of any generator, and needs no configuration"),
  ensemble_scheduling: refused("a generator has no steps; an ensemble in a folder of its own can have it as a step"),
  cc_model_filenames: warned("the files in the folder 'onnx' have the names that exporters give them"),
  default_model_filename: refused("the files in the folder 'onnx' have the names that exporters give them"),
  parameters: warned("a request's own parameters say how its text is made"),
  response_cache: { enable: warned("every prompt is answered anew") },
  model_warmup: warned("the samples of a generator would be tensors, which it does not take"),
  model_transaction_policy: { decoupled: needless("a generator answers with one response, or with a stream of them") },
};

const noGraph = "an ensemble has no graph of its own: write it into the configuration of a step's model";

/** The verdicts on an ensemble's configuration. Most fields are those of the steps' models. */
export const ensembleVerdicts: Verdicts = {
  ...verdicts,
  backend: refused(noGraph),
  input: {
    ...input,
    reshape: refused(noGraph),
    allow_ragged_batch: needless("whether requests share a batch is up to the models of the steps"),
  },
  output: { ...output, reshape: refused(noGraph) },
  batch_input: refused(noGraph),
  batch_output: refused(noGraph),
  optimization: refused(noGraph),
  // Only the form of the tutorials has it beside the steps.
  dynamic_batching: {
    ...dynamicBatching,
    preferred_batch_size: refused(noGraph),
    max_queue_delay_microseconds: refused(noGraph),
  },
  sequence_batching: refused(noGraph),
  instance_group: refused(noGraph),
  default_model_filename: refused(noGraph),
  cc_model_filenames: refused(noGraph),
  model_warmup: refused(noGraph),
  model_operations: refused(noGraph),
  model_transaction_policy: { decoupled: needless("an ensemble is decoupled if the model of a step is") },
};

const aBoolean = "it must be true, on or 1, or false, off or 0";
const isThreadCount = (value: unknown): boolean => /^\d{1,4}$/.test(String(value));
const performance = "Baton does not set this option of ONNX Runtime; it changes no answer";

/**
 * The verdicts on `parameters`, by key. A key that ends in ":" stands for all that begin with it.
 */
export const parameterVerdicts: Readonly<Record<string, Verdict>> = {
  intra_op_thread_count: checked("it must be a whole number, 0 for as many as there are cores but one", isThreadCount),
  inter_op_thread_count: checked("it must be a whole number, 0 for ONNX Runtime's choice", isThreadCount),
  execution_mode: checked(
    "it must be 0, one operator after the other, or 1, branches of the graph side by side",
    (value) => executionMode(String(value)) !== undefined,
  ),
  enable_mem_arena: checked(aBoolean, (value) => tritonBoolean(String(value)) !== undefined),
  enable_mem_pattern: checked(aBoolean, (value) => tritonBoolean(String(value)) !== undefined),
  "memory.enable_memory_arena_shrinkage": warned(performance),
  "session.use_device_allocator_for_initializers": warned(performance),
  cudnn_conv_algo_search: warned(onlyGpu),
  gpu_mem_limit: warned(onlyGpu),
  arena_extend_strategy: warned(onlyGpu),
  do_copy_in_default_stream: warned(onlyGpu),
  implicit_start: checked(
    "it must be 'true', and a request of an unknown id begins its sequence without START, or 'false'",
    (value) => value === "true" || value === "false",
  ),
  "batch_axis:": checked("it must be the number of an axis of the graph's tensor, from 0", (value) =>
    /^\d{1,2}$/.test(String(value)),
  ),
  "constant_input:": obeyed,
  iterate_while: obeyed,
  "feed:": obeyed,
  respond_when: obeyed,
  checkpoint_every: checked("it must be a whole number from 1 to 9999, of runs between two checkpoints", (value) =>
    /^[1-9]\d{0,3}$/.test(String(value)),
  ),
  max_iterations: checked("it must be a whole number from 1 to 999999, of runs for one request", (value) =>
    /^[1-9]\d{0,5}$/.test(String(value)),
  ),
  checkpoint_history: checked(
    "it must be a whole number from 1 to 999, of checkpoints that are kept of a sequence",
    (value) => /^[1-9]\d{0,2}$/.test(String(value)),
  ),
  execute_delay_ms: checked(
    // A run without an answer for 30 s counts as hung (worker/thread/guard.ts).
    "it must be a whole number from 1 to 9999, of ms that each run of the model takes at least",
    (value) => /^[1-9]\d{0,3}$/.test(String(value)),
  ),
  takes_states_of: checked("it must be '*', or numbers of versions with commas between them, such as '1,2'", (value) =>
    /^(\*|[1-9]\d*(,[1-9]\d*)*)$/.test(String(value)),
  ),
};

const unknownParameter = warned("no parameter of this name is known");

/** The parameters that concern a model's sequences, which an ensemble may have, too. */
export const parametersOfSequences = ["checkpoint_history", "implicit_start", "takes_states_of"];

/** The verdict on a parameter of an ensemble. */
export function ensembleParameterVerdict(key: string): Verdict {
  const verdict = parameterVerdict(key);
  return verdict === unknownParameter || parametersOfSequences.includes(key) ? verdict : refused(noGraph);
}

export function parameterVerdict(key: string): Verdict {
  const family = key.slice(0, key.indexOf(":") + 1);
  const name = family === "" ? key : family;
  return Object.hasOwn(parameterVerdicts, name) ? (parameterVerdicts[name] ?? unknownParameter) : unknownParameter;
}
