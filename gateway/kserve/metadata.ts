/**
 * What the server, a model and the repository tell about themselves, as the v2 protocol has it;
 * each transport prints it in its own way.
 */
import { fullShape, type TensorSpec } from "#shared/contract/announcement.js";
import type { ModelDirectory } from "../fleet/models.js";

/**
 * Triton's extensions of the protocol, in Triton's order and only those that are there: a client
 * that looks for an extension wants to use it.
 */
const extensions = [
  "sequence",
  "model_repository",
  "schedule_policy",
  "model_configuration",
  "binary_tensor_data",
  "parameters",
];

/** @param name from the settings, since some of Triton's own clients insist on Triton's name */
export function serverMetadata(name: string, version: string): object {
  return { name, version, extensions };
}

/**
 * @param version the one that is asked for; undefined lists all
 * @throws InferenceError where the model is not known
 */
export function modelMetadata(directory: ModelDirectory, name: string, version: string | undefined): object {
  const model = directory.find(name, version);
  const versions = directory.all().filter((served) => served.name === name);
  const describe = (spec: TensorSpec): object => ({
    name: spec.name,
    datatype: spec.datatype,
    shape: fullShape(model, spec),
  });
  return {
    name,
    versions: version === undefined ? versions.map((served) => served.version) : [model.version],
    platform: model.platform,
    inputs: model.inputs.map(describe),
    outputs: model.outputs.map(describe),
  };
}

/** @throws InferenceError where the model is not known */
export function modelConfig(directory: ModelDirectory, name: string, version: string | undefined): object {
  return directory.find(name, version).config;
}

/**
 * Whether a request could be served now: it can be admitted, and some model is served. A model that
 * failed somewhere does not make the server unready: its own readiness tells, and the rest runs on.
 */
export function isServerReady(directory: ModelDirectory, admissionWorks: boolean): boolean {
  return admissionWorks && directory.all().length > 0;
}

/** @param readyOnly whether models that no worker could load are left out */
export function repositoryIndex(directory: ModelDirectory, readyOnly: boolean): object[] {
  const ready = directory.all().map(({ name, version }) => ({ name, version, state: "READY" }));
  if (readyOnly) return ready;
  const served = new Set(ready.map(({ name, version }) => `${name}/${version}`));
  const unavailable = directory
    .failed()
    .filter(({ name, version }) => !served.has(`${name}/${version}`))
    .map(({ name, version, reason }) => ({ name, version, state: "UNAVAILABLE", reason }));
  return [...ready, ...unavailable];
}
