/**
 * Reads and checks an iterative model: `sequence_batching.iterative_sequence`, and the parameters
 * that say how its graph is run again for one request. Triton leaves that to a backend of its
 * user's; ONNX models have these parameters instead.
 */
import type { ModelConfig } from "#shared/model/config.js";
import { batchAxisOf } from "../../onnx/batch-axis.js";
import type { GraphMetadata, GraphTensor } from "../../onnx/graph.js";
import { LoadError } from "../../thread/load-error.js";

/** How the runs of one request follow each other. */
export interface Iteration {
  /** The output that asks for another run: one BOOL for each request. */
  readonly again: string;
  /** The outputs that are inputs of the next run. */
  readonly feeds: readonly Feed[];
  /** The most runs of a request. */
  readonly most: number;
  /** The output that says whether a run gives an answer; undefined if each run gives one. */
  readonly answersWhen: string | undefined;
  /** How many runs lie between two checkpoints. */
  readonly every: number;
}

export interface Feed {
  readonly output: string;
  readonly input: string;
}

const AGAIN = "iterate_while";
const FEED = "feed:";
const MOST = "max_iterations";
const ANSWERS = "respond_when";
const EVERY = "checkpoint_every";
/** The most runs of a request, if the configuration does not say. */
const USUAL_MOST = 1_000;

/** @returns undefined for a model that runs once for each request */
export function iterationOf({ sequence_batching: sequence, parameters }: ModelConfig): Iteration | undefined {
  if (sequence?.iterative_sequence !== true) return undefined;
  const told = parameters[MOST]?.string_value;
  return {
    again: parameters[AGAIN]?.string_value ?? "",
    feeds: feedsOf(parameters),
    most: told === undefined ? USUAL_MOST : Number(told),
    answersWhen: parameters[ANSWERS]?.string_value,
    every: Number(parameters[EVERY]?.string_value ?? 1),
  };
}

/** Parameters without a family. */
const alone = [AGAIN, MOST, ANSWERS, EVERY];

/** Whether requests get any number of answers. */
export function isDecoupled({ model_transaction_policy: policy }: ModelConfig): boolean {
  return policy?.decoupled === true;
}

function feedsOf(parameters: ModelConfig["parameters"]): Feed[] {
  return Object.entries(parameters)
    .filter(([key]) => key.startsWith(FEED))
    .map(([key, { string_value: input }]) => ({ output: key.slice(FEED.length), input }));
}

/** @throws LoadError for a configuration that does not say how to iterate, or says it in vain */
export function validateIteration(config: ModelConfig): void {
  const { name, parameters } = config;
  const iteration = iterationOf(config);
  if (iteration === undefined) {
    const vain = Object.keys(parameters).find((key) => alone.includes(key) || key.startsWith(FEED));
    if (vain === undefined) return;
    const needs = "needs sequence_batching { iterative_sequence: true }";
    throw new LoadError(`parameter '${vain}' ${needs}, which ${name} does not have`);
  }
  if (iteration.again === "") {
    const example = `parameters { key: "${AGAIN}" value: { string_value: "<output>" } }`;
    throw new LoadError(`iterative_sequence of ${name} needs the BOOL output that asks for another run: ${example}`);
  }
  if (iteration.answersWhen !== undefined && !isDecoupled(config)) {
    const needs = "needs model_transaction_policy { decoupled: true }";
    throw new LoadError(`parameter '${ANSWERS}' ${needs}, which ${name} does not have`);
  }
  const controls = config.sequence_batching?.control_input.flatMap(({ control }) => control) ?? [];
  if (controls.some(({ kind }) => kind === "CONTROL_SEQUENCE_CORRID")) {
    const without = "which requests of an iterative model may lack";
    throw new LoadError(`control CONTROL_SEQUENCE_CORRID of ${name} needs a correlation id, ${without}`);
  }
  if (config.input.some((input) => input.allow_ragged_batch)) {
    throw new LoadError(`iterative_sequence of ${name} is not supported together with ragged inputs`);
  }
  const twice = iteration.feeds.find(({ input }, at) => iteration.feeds.findIndex((one) => one.input === input) !== at);
  if (twice !== undefined) throw new LoadError(`input '${twice.input}' of ${name} is fed by more than one output`);
}

/**
 * @param config complete
 * @throws LoadError if the graph has not the tensors that the parameters name
 */
export function checkIteration(config: ModelConfig, graph: GraphMetadata): void {
  const iteration = iterationOf(config);
  if (iteration === undefined) return;
  checkFlag(config, graph, AGAIN, iteration.again);
  if (iteration.answersWhen !== undefined) checkFlag(config, graph, ANSWERS, iteration.answersWhen);
  for (const { output, input } of iteration.feeds) checkFeed(config, graph, output, input);
}

function checkFlag(config: ModelConfig, graph: GraphMetadata, parameter: string, name: string): void {
  const key = `parameters['${parameter}']`;
  const flag = outputOf(graph, name, key);
  const isOne = ownDims(config, flag, key).every((dim) => dim === 1);
  if (flag.datatype === "BOOL" && isOne) return;
  throw new LoadError(`${key}: output '${name}' must be one BOOL for each request, but is ${shown(flag)}`);
}

function checkFeed(config: ModelConfig, graph: GraphMetadata, output: string, input: string): void {
  const key = `parameters['${FEED}${output}']`;
  const from = outputOf(graph, output, key);
  const to = [...graph.inputs, ...(graph.initializers ?? [])].find(({ name }) => name === input);
  if (to === undefined || !config.input.some(({ name }) => name === input)) {
    const names = config.input.map(({ name }) => name);
    throw new LoadError(`${key}: the inputs of ${config.name}'s requests are ${names.join(", ")}`);
  }
  const reshaped = [...config.input, ...config.output].find((one) => one.reshape && [input, output].includes(one.name));
  if (reshaped !== undefined) throw new LoadError(`${key}: '${reshaped.name}' has a reshape, which is not supported`);
  const [given, taken] = [ownDims(config, from, key), ownDims(config, to, key)];
  const fits = given.length === taken.length && given.every((dim, at) => agree(dim, taken[at] ?? 0));
  if (from.datatype === to.datatype && fits) return;
  throw new LoadError(`${key}: output '${output}' ${shown(from)} does not fit input '${input}' ${shown(to)}`);
}

/** Sizes of which one is variable may turn out to be equal. */
function agree(one: number, other: number): boolean {
  return one === -1 || other === -1 || one === other;
}

function outputOf({ outputs }: GraphMetadata, name: string, key: string): GraphTensor {
  const tensor = outputs.find((one) => one.name === name);
  if (tensor !== undefined) return tensor;
  throw new LoadError(`${key}: the graph's outputs are ${outputs.map((one) => one.name).join(", ")}`);
}

/** The sizes of one request's part. */
function ownDims(config: ModelConfig, tensor: GraphTensor, key: string): readonly number[] {
  if (config.max_batch_size === 0) return tensor.dims;
  const axis = batchAxisOf(config, tensor);
  if (axis !== undefined) return tensor.dims.toSpliced(axis, 1);
  throw new LoadError(`${key}: '${tensor.name}' ${shown(tensor)} must have a batch dimension, of any size`);
}

function shown({ datatype, dims }: GraphTensor): string {
  return `${datatype} [${dims.join(",")}]`;
}
