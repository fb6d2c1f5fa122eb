/**
 * Loads the ensembles of a repository, after all other models: an ensemble has no files of its own,
 * and runs the models that this worker has loaded.
 */
import { createHash } from "node:crypto";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { EnsembleStep } from "#shared/model/config.js";
import { digestOf } from "../models/digest.js";
import { checkLabels, labelled, type Labels } from "../models/labels.js";
import { configJson } from "../models/pbtxt/config-json.js";
import type { FoundEnsemble } from "../models/scan.js";
import { stepsOf } from "../models/validate/ensemble.js";
import { filesOf } from "../models/weights.js";
import { LoadError } from "../thread/load-error.js";
import { ensembleOf, servedEnsemble, type Callable, type EnsembleModel } from "./serving.js";

export interface LoadedEnsemble {
  readonly kind: "ensemble";
  readonly serving: EnsembleModel;
  readonly served: ServedModel;
  readonly callable: Callable;
}

/**
 * @param callables the models of this worker that steps can run
 * @throws LoadError if a model of a step is missing, or does not fit
 */
export async function loadEnsemble(
  { config, labels, warnings }: FoundEnsemble,
  version: string,
  callables: readonly Callable[],
): Promise<LoadedEnsemble> {
  const steps = config.ensemble_scheduling?.step ?? [];
  const called = steps.map((step) => modelOf(config.name, step, callables));
  const serving = ensembleOf(config, version, called);
  const files = [...new Set(called.flatMap((one) => one.files))].sort();
  const printed = configJson(config);
  // Sequences are pinned to the digest, and their states are those of the steps' models.
  const digests = called.map(({ served }) => served.digest);
  const facts = JSON.stringify({ printed, digests });
  const isCached = config.response_cache?.enable === true;
  const digest = isCached
    ? await digestOf(facts, (await Promise.all(files.map(filesOf))).flat())
    : createHash("sha256").update(facts).digest("hex");
  const plain = servedEnsemble(config, serving, digest, printed);
  const all = new Map([...labelsOfSteps(serving), ...labels]);
  checkLabels(config.name, all);
  const served = {
    ...plain,
    outputs: plain.outputs.map((output) => labelled(output, all)),
    ...(warnings.length > 0 && { warnings: [...warnings] }),
  };
  const callable = {
    served,
    batching: serving.batching,
    states: serving.states,
    maxIdleMs: serving.maxIdleMs,
    files,
  };
  return { kind: "ensemble", serving, served, callable };
}

/** Labels that steps have for the outputs of the ensemble. Its own come before these. */
function labelsOfSteps({ steps, outputs: own }: EnsembleModel): Labels {
  return new Map(
    steps.flatMap(({ served, outputs }) =>
      outputs.flatMap(({ name, to }) => {
        const { labels } = served.outputs.find((output) => output.name === name) ?? {};
        return labels === undefined || !own.some((output) => output.name === to) ? [] : [[to, labels] as const];
      }),
    ),
  );
}

/** @throws LoadError */
function modelOf(ensemble: string, { model_name: name, model_version }: EnsembleStep, callables: readonly Callable[]) {
  const versions = callables.filter(({ served }) => served.name === name);
  const found =
    model_version === -1
      ? versions.reduce<Callable | undefined>((best, one) => (isNewer(one, best) ? one : best), undefined)
      : versions.find(({ served }) => served.version === String(model_version));
  if (found !== undefined) return found;
  const which = model_version === -1 ? `'${name}'` : `'${name}' version ${model_version}`;
  throw new LoadError(`ensemble '${ensemble}' depends on ${which}, which this worker has not loaded`);
}

function isNewer({ served }: Callable, other: Callable | undefined): boolean {
  return other === undefined || BigInt(served.version) > BigInt(other.served.version);
}

/**
 * Puts the ensembles behind those that their steps run. One whose steps lead back to itself comes
 * last, and does not find its models.
 */
export function inOrder(ensembles: readonly FoundEnsemble[]): readonly FoundEnsemble[] {
  const ordered: FoundEnsemble[] = [];
  let left = [...ensembles];
  for (;;) {
    const waits = new Set(left.map(({ name }) => name));
    const next = left.filter((one) => !stepsOf(one.config).some((name) => waits.has(name)));
    if (next.length === 0) return [...ordered, ...left];
    ordered.push(...next);
    left = left.filter((one) => !next.includes(one));
  }
}
