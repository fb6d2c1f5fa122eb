/**
 * Checks an ensemble by its configuration alone, in Triton's words: its steps, and that each tensor
 * is written once and used. `worker/ensembles/graph.ts` checks it with the models of its steps.
 */
import type { EnsembleStep, ModelConfig } from "#shared/model/config.js";
import { LoadError } from "../../thread/load-error.js";

export const ENSEMBLE = "ensemble";

export function isEnsemble({ platform, ensemble_scheduling }: ModelConfig): boolean {
  return platform === ENSEMBLE || ensemble_scheduling !== undefined;
}

/** The names of the models that an ensemble's steps run. */
export function stepsOf({ ensemble_scheduling }: ModelConfig): readonly string[] {
  return (ensemble_scheduling?.step ?? []).map(({ model_name: name }) => name);
}

/** @throws LoadError */
export function validateEnsemble(config: ModelConfig): void {
  const { name, platform, ensemble_scheduling: scheduling } = config;
  if (scheduling === undefined) {
    throw new LoadError(`ensemble scheduling must be set for ensemble '${name}' whose platform is ${ENSEMBLE}`);
  }
  if (platform !== ENSEMBLE) {
    throw new LoadError(`ensemble scheduling cannot be set for model '${name}' whose platform is not ${ENSEMBLE}`);
  }
  const vain = [
    ["instance group should not", config.instance_group.length > 0],
    ["optimization should not", config.optimization !== undefined],
    ["model_warmup can not", config.model_warmup.length > 0],
  ] as const;
  for (const [what, given] of vain) if (given) throw new LoadError(`${what} be specified for ensemble '${name}'`);
  if (scheduling.step.length === 0) throw new LoadError(`must specify 'step' for ensemble '${name}'`);
  for (const [index, step] of scheduling.step.entries()) validateStep(name, step, index);
  validateFlow(config, scheduling.step);
  const reshaped = [...config.input, ...config.output].find(({ reshape }) => reshape !== undefined);
  if (reshaped !== undefined) {
    const instead = "write the reshape into the configuration of the step's model";
    throw new LoadError(`reshape of '${reshaped.name}' is not supported in ensemble '${name}': ${instead}`);
  }
}

function validateStep(ensemble: string, step: EnsembleStep, index: number): void {
  const missing = [
    ["model_name", step.model_name === ""],
    ["input_map", Object.keys(step.input_map).length === 0],
    ["output_map", Object.keys(step.output_map).length === 0],
  ] as const;
  const where = `in step ${index} of ensemble '${ensemble}'`;
  for (const [field, isMissing] of missing) if (isMissing) throw new LoadError(`must specify '${field}' ${where}`);
  const version = step.model_version;
  if (version !== -1 && version < 1) {
    throw new LoadError(`model_version ${where} must be -1 for the latest version, or a version, got ${version}`);
  }
}

/** Follows the tensors from the ensemble's inputs, through all steps. */
function validateFlow({ name, input, output }: ModelConfig, steps: readonly EnsembleStep[]): void {
  const written = new Set(input.map((tensor) => tensor.name));
  const used = new Set(steps.flatMap(({ input_map }) => Object.values(input_map)));
  const outputs = new Set(output.map((tensor) => tensor.name));
  for (const [index, { output_map }] of steps.entries()) {
    for (const tensor of Object.values(output_map)) {
      if (written.has(tensor)) {
        const once = "can appear in an output map only once";
        throw new LoadError(`ensemble tensor '${tensor}' ${once} for ensemble '${name}' step ${index}`);
      }
      written.add(tensor);
    }
  }
  const idle = input.find((tensor) => !used.has(tensor.name) && !outputs.has(tensor.name));
  if (idle !== undefined) throw new LoadError(`ensemble input '${idle.name}' for ensemble ${name}' is not used`);
  const ready = reachable(
    input.map((tensor) => tensor.name),
    steps,
  );
  for (const { name: tensor } of output) {
    if (!written.has(tensor)) throw new LoadError(`ensemble output '${tensor}' for ensemble ${name}' is not used`);
    if (!ready.has(tensor)) throw new LoadError(`output '${tensor}' for ensemble '${name}' is not written`);
  }
  const unused = [...written, ...used].find(
    (tensor) => !outputs.has(tensor) && (!ready.has(tensor) || !used.has(tensor)),
  );
  if (unused !== undefined) throw new LoadError(`ensemble tensor '${unused}' is unused in ensemble '${name}'`);
}

/** The tensors that exist once all steps have run whose inputs exist. */
function reachable(inputs: readonly string[], steps: readonly EnsembleStep[]): ReadonlySet<string> {
  const ready = new Set(inputs);
  let left = [...steps];
  for (;;) {
    const next = left.filter(({ input_map }) => Object.values(input_map).every((tensor) => ready.has(tensor)));
    if (next.length === 0) return ready;
    for (const tensor of next.flatMap(({ output_map }) => Object.values(output_map))) ready.add(tensor);
    left = left.filter((step) => !next.includes(step));
  }
}
