/**
 * Descriptions of the server, a model and the repository, in the form of the v2 protocol. Each
 * transport prints them in its own way.
 */
import { fullShape, type TensorSpec } from "#shared/contract/announcement.js";
import type { ModelDirectory } from "../../fleet/models.js";

/**
 * The extensions of Triton that Baton has, in Triton's order. The list names no other, because a
 * client that finds an extension uses it.
 */
const extensions = [
  "classification",
  "sequence",
  "model_repository",
  "model_repository(unload_dependents)",
  "schedule_policy",
  "model_configuration",
  "binary_tensor_data",
  "parameters",
  "statistics",
  "trace",
  "logging",
];

/** @param name from the settings, because some of Triton's own clients insist on Triton's name */
export function serverMetadata(name: string, version: string): object {
  return { name, version, extensions };
}

/**
 * @param version the version that the client asks for; undefined lists all
 * @throws InferenceError if the model is unknown
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

/** @throws InferenceError if the model is unknown */
export function modelConfig(directory: ModelDirectory, name: string, version: string | undefined): object {
  return directory.find(name, version).config;
}

/**
 * Whether the gateway could serve a request now: admission works, and workers serve some model. A
 * model that failed on a worker does not make the server unready: the model's own readiness shows
 * the failure, and other models run.
 */
export function isServerReady(directory: ModelDirectory, admissionWorks: boolean): boolean {
  return admissionWorks && directory.all().length > 0;
}

/** @param readyOnly leaves out the models that no worker could load */
export function repositoryIndex(directory: ModelDirectory, readyOnly: boolean): object[] {
  const ready = directory.all().map(({ name, version }) => {
    const reason = directory.outdated(name);
    return { name, version, state: "READY", ...(reason !== undefined && { reason }) };
  });
  if (readyOnly) return ready;
  const served = new Set(ready.map(({ name, version }) => `${name}/${version}`));
  const unavailable = directory
    .failed()
    .filter(({ name, version }) => !served.has(`${name}/${version}`))
    .map(({ name, version, reason }) => ({ name, version, state: "UNAVAILABLE", reason }));
  const known = new Set(unavailable.map(({ name }) => name));
  const idle = directory
    .idle()
    .filter(({ name }) => !known.has(name))
    .map(({ name, wasUnloaded }) => (wasUnloaded ? { name, state: "UNAVAILABLE", reason: "unloaded" } : { name }));
  return [...ready, ...unavailable, ...idle];
}
