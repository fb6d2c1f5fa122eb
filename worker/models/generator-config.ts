/**
 * Reads the config.pbtxt of a generator's folder: the names of the text input and output, and the
 * device. The other fields get verdicts as for any model: obeyed, warned of, or refused by name.
 */
import type { ModelConfig, ModelInput, ModelOutput } from "#shared/model/config.js";
import type { WantedPlace } from "../devices/device.js";
import { LoadError } from "../thread/load-error.js";
import { completeDefaults } from "./validate/complete.js";
import { figuresOf, validateFigures, type ModelFigures } from "./validate/figures.js";
import { judgeGenerator } from "./validate/judge.js";
import type { ReadConfig } from "./validate/tutorial.js";
import { validateGroups } from "./validate/validate.js";

/** A text tensor of a generator: its input or its output. */
export interface TextTensor {
  readonly name: string;
  /** Without the batch dimension. */
  readonly dims: readonly number[];
}

export interface GeneratorTensors {
  /** 0 for a generator without a batch dimension. A request has one text in both cases. */
  readonly maxBatchSize: number;
  readonly input: TextTensor;
  readonly output: TextTensor;
}

export interface GeneratorConfig {
  /**
   * Undefined if the configuration names no tensors. The generator then takes a text of any name.
   */
  readonly tensors: GeneratorTensors | undefined;
  /** Undefined if the configuration has no instance group. */
  readonly place: WantedPlace | undefined;
  /** A sentence for each field that Baton does not take as written. */
  readonly warnings: readonly string[];
  readonly figures: ModelFigures;
}

/**
 * @param name of the folder
 * @param gpus ids of the GPUs that the worker offers
 * @throws LoadError
 */
export function generatorConfig(
  { config, warnings }: ReadConfig,
  name: string,
  gpus: readonly number[],
): GeneratorConfig {
  if (config.name !== "" && config.name !== name) {
    const rule = "directory name must equal model name";
    throw new LoadError(`unexpected directory name '${name}' for model '${config.name}', ${rule}`);
  }
  const unheard = judgeGenerator(config);
  validateFigures({ ...config, name });
  return {
    warnings: [...warnings, ...unheard],
    tensors: tensorsOf(config),
    place: placeOf(config, name, gpus),
    figures: figuresOf(config),
  };
}

/** As for any model, only the first group counts, but all groups have to be right. */
function placeOf(written: ModelConfig, name: string, gpus: readonly number[]): WantedPlace | undefined {
  const [first] = written.instance_group;
  if (first === undefined) return undefined;
  const facts = { directory: name, firstVersionFiles: undefined, gpus };
  const complete = completeDefaults({ ...written, backend: "onnxruntime" }, facts);
  validateGroups(complete, gpus);
  const [group = first] = complete.instance_group;
  return { kind: group.kind, gpus: group.gpus, needsGpu: first.kind === "KIND_GPU" };
}

function tensorsOf({ input, output, max_batch_size: maxBatchSize }: ModelConfig): GeneratorTensors | undefined {
  if (maxBatchSize < 0) throw new LoadError("'max_batch_size' must be a non-negative value");
  if (input.length === 0 && output.length === 0) return undefined;
  const [first, ...moreInputs] = input;
  const [answer, ...moreOutputs] = output;
  if (first === undefined || answer === undefined || moreInputs.length > 0 || moreOutputs.length > 0) {
    throw new LoadError(
      `a generator has one input and one output, both TYPE_STRING, but ${input.length} and ${output.length} are given: ` +
        'write input { name: "TEXT" data_type: TYPE_STRING dims: 1 } output { name: "TEXT" data_type: TYPE_STRING dims: 1 }',
    );
  }
  return { maxBatchSize, input: textTensor("input", first), output: textTensor("output", answer) };
}

function textTensor(role: string, { name, data_type, dims }: ModelInput | ModelOutput): TextTensor {
  if (name === "") throw new LoadError(`the ${role} of a generator must have a name`);
  if (data_type !== "TYPE_STRING") {
    throw new LoadError(`${role} '${name}' of a generator must have data_type TYPE_STRING, not ${data_type}`);
  }
  if (dims.length === 0 || dims.some((dim) => dim !== 1 && dim !== -1)) {
    throw new LoadError(`${role} '${name}' of a generator has one text: its dims must be 1, or -1`);
  }
  return { name, dims };
}
