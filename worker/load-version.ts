/**
 * Loads a version of a tensor model: opens a session for each instance, completes the configuration
 * with the graph, and tries the model before it serves.
 */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { WorkerConfig } from "./config.js";
import { computeCapabilities } from "./devices/card.js";
import type { Device, Places } from "./devices/device.js";
import { callableOf, type Callable } from "./ensembles/serving.js";
import { digestOf } from "./models/digest.js";
import { labelled } from "./models/labels.js";
import { configJson } from "./models/pbtxt/config-json.js";
import { resolveModel } from "./models/resolve.js";
import type { FoundModel, GoodVersion } from "./models/scan.js";
import { readWarmUpFiles } from "./models/warm-up-files.js";
import { readConstants } from "./models/validate/constants.js";
import { configuredOptions } from "./onnx/session-options.js";
import type { Placement } from "./onnx/providers.js";
import { compareWithCpu } from "./tensors/compare.js";
import { startModel, type ModelHost } from "./tensors/host.js";
import type { TensorOptions } from "./tensors/protocol.js";
import { filesOf } from "./models/weights.js";
import { samplesOf } from "./tensors/samples.js";
import { servedOf, servingOf, unsupported, type ServingModel } from "./tensors/serving.js";
import { runSamples, warmUp } from "./tensors/warm-up.js";
import { LoadError } from "./thread/load-error.js";

export interface LoadedTensorModel {
  readonly kind: "tensors";
  readonly serving: ServingModel;
  readonly served: ServedModel;
  /**
   * The settings that the graph supplied for gaps in the configuration; undefined if there are none
   * of note.
   */
  readonly inferred: string | undefined;
  /** The model for the steps of ensembles. */
  readonly callable: Callable;
}

/** The places of a model's instances, and the settings that it loads with. */
interface Loading {
  readonly settings: WorkerConfig;
  readonly device: Device;
  readonly places: Places;
}

/** @throws Error if the model cannot load, or cannot run as its configuration says */
export async function loadVersion(
  { settings, device, places }: Loading,
  found: FoundModel,
  { version, file, cardFiles }: GoodVersion,
  onFatal: (reason: string) => void,
): Promise<LoadedTensorModel> {
  const onCpu = places.filter(({ gpu }) => gpu === undefined).length;
  const shared = {
    ...configuredOptions(settings.BATON_INTRA_OP_THREADS, onCpu, found.config),
    turns: device.turns,
    optionalInputs: found.config.input.filter(({ optional }) => optional).map(({ name }) => name),
    executeDelayMs: Number(found.config.parameters["execute_delay_ms"]?.string_value ?? 0),
  };
  const named = found.config.cc_model_filenames;
  const mayName = Object.keys(named).length > 0 && onCpu < places.length;
  const capabilities = mayName ? await computeCapabilities(process.env) : [];
  const [first, ...further] = places.map((placement): TensorOptions => {
    const name = fileName(placement, named, capabilities);
    const modelFile = name === undefined ? file : cardFiles.get(name.capability);
    if (modelFile === undefined) throw new LoadError(`'${version}/${name?.file}' does not exist`);
    return { ...shared, placement, modelFile };
  });
  if (first === undefined) throw new RangeError("a model without an instance");
  const host = await startModel(first, onFatal);
  const others: ModelHost[] = [];
  try {
    const { config: complete, inferred, warnings: rewritten } = resolveModel(found, host.graph);
    const constants = readConstants(complete, host.graph);
    const reason = unsupported(complete, host.graph);
    if (reason !== undefined) throw new LoadError(reason);
    // One after the other, because two sessions on a GPU must not open at the same time.
    for (const options of further) others.push(await startModel(options, onFatal));
    const printed = configJson(complete);
    const text = JSON.stringify(configJson({ ...complete, instance_group: found.groups }));
    // Weights beside the file are part of it where old answers are kept. Elsewhere the digest stays
    // as it was, since sequences are pinned to it.
    const isCached = complete.response_cache?.enable === true;
    const digest = await digestOf(text, isCached ? await filesOf(file) : [file]);
    const { initialStates } = found;
    const facts = servingOf(complete, host.graph, { initialStates, constants });
    const serving = { ...facts, version, host, ...(others.length > 0 && { others }) };
    const plain = servedOf(complete, host.graph, version, digest, printed, places.length);
    const served = { ...plain, outputs: plain.outputs.map((output) => labelled(output, found.labels)) };
    const warmUpFiles = await readWarmUpFiles(found.directory, complete);
    const tried: string[] = [];
    for (const [i, options] of [first, ...further].entries()) {
      const instance = { ...serving, host: others[i - 1] ?? host };
      const isNew = places.findIndex(({ gpu }) => gpu === options.placement.gpu) === i;
      if (isNew)
        tried.push(...(await compareWithCpu(instance, served, options, settings.BATON_GPU_TOLERANCE, onFatal)));
      await runSamples(samplesOf(instance, served, complete, warmUpFiles));
      tried.push(...(await warmUp(instance, served, found.warmUp)));
    }
    const isNamed = places.some((placement) => fileName(placement, named, capabilities) !== undefined);
    const unheard = Object.keys(named).length === 0 || isNamed ? [] : [noSuchCard];
    const warnings = [...found.warnings, ...rewritten, ...unheard, ...new Set(tried)];
    return {
      kind: "tensors",
      serving,
      served: { ...served, ...(warnings.length > 0 && { warnings }) },
      inferred,
      callable: callableOf(serving, served, [file]),
    };
  } catch (error) {
    for (const one of [host, ...others]) await one.close();
    throw error;
  }
}

const noSuchCard =
  "cc_model_filenames has no effect: it names no file for the compute capability of a card that the model runs on";

/**
 * The file that a configuration names for a card of NVIDIA's, as Triton chooses it.
 * @param capabilities by the number of the card
 * @returns undefined for the default file
 */
export function fileName(
  { providers: [provider], gpu }: Placement,
  named: Readonly<Record<string, string>>,
  capabilities: readonly string[],
): { readonly capability: string; readonly file: string } | undefined {
  const isCuda = provider === "cuda" || provider === "tensorrt";
  const capability = isCuda && gpu !== undefined ? capabilities[gpu] : undefined;
  const file = capability === undefined ? undefined : named[capability];
  return capability === undefined || file === undefined ? undefined : { capability, file };
}
