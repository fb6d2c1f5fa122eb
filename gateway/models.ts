/** Which models the fleet serves, worked out from what its workers announced: the gateway has no copy of the repository. */
import type { Announcement, ServedModel } from "#shared/contract/announcement.js";
import { InferenceError } from "#shared/errors.js";

interface FailedModel {
  readonly name: string;
  readonly version?: string | undefined;
  readonly reason: string;
}

export interface ModelDirectory {
  /**
   * The latest version where none is asked for. A model whose workers have all gone lately is found too: its requests queue until one is back.
   * @throws InferenceError in Triton's words
   */
  find(name: string, version?: string): ServedModel;
  /** Whether a live worker serves it. */
  isServed(model: ServedModel): boolean;
  /** Every version of every model that a worker serves, by name and then version. */
  all(): readonly ServedModel[];
  /** What no worker could load, and models that workers disagree about. A model may be here and served all the same. */
  failed(): readonly FailedModel[];
}

/** @param lapsed announcements of workers that have gone lately. */
export function directoryOf(
  announcements: readonly Announcement[],
  lapsed: readonly Announcement[] = [],
): ModelDirectory {
  const conflicts: FailedModel[] = [];
  const byName = byNameAndVersion(announcements, conflicts);
  const gone = byNameAndVersion(lapsed, []);
  const served = [...byName.keys()].sort().flatMap((name) => byName.get(name) ?? []);
  const failed = failedEverywhere(announcements, byName);
  return {
    find: (name, version) =>
      lookUp(byName, name, version) ?? lookUp(gone, name, version) ?? unknown(failed, name, version),
    isServed: (model) => served.includes(model),
    all: () => served,
    failed: () => [...failed, ...conflicts],
  };
}

function byNameAndVersion(
  announcements: readonly Announcement[],
  conflicts: FailedModel[],
): Map<string, ServedModel[]> {
  const byName = new Map<string, ServedModel[]>();
  for (const offers of groupOffers(announcements).values()) {
    const model = prevailing(offers);
    if (offers.size > 1) conflicts.push(conflict(model, offers));
    const versions = byName.get(model.name);
    if (versions === undefined) byName.set(model.name, [model]);
    else versions.push(model);
  }
  for (const versions of byName.values()) versions.sort((a, b) => compareVersions(a.version, b.version));
  return byName;
}

interface Offer {
  readonly model: ServedModel;
  workers: number;
}

/** By name and version, then by digest. A model's name holds no slash, so the two cannot run together. */
function groupOffers(announcements: readonly Announcement[]): Map<string, Map<string, Offer>> {
  const groups = new Map<string, Map<string, Offer>>();
  for (const model of announcements.flatMap(({ models }) => models)) {
    const key = `${model.name}/${model.version}`;
    const offers = groups.get(key) ?? new Map<string, Offer>();
    groups.set(key, offers);
    const offer = offers.get(model.digest);
    if (offer === undefined) offers.set(model.digest, { model, workers: 1 });
    else offer.workers++;
  }
  return groups;
}

/** Ties go to the smaller digest, so that all gateways choose alike. */
function prevailing(offers: ReadonlyMap<string, Offer>): ServedModel {
  const [first] = [...offers.values()].sort(
    (a, b) => b.workers - a.workers || (a.model.digest < b.model.digest ? -1 : 1),
  );
  return (first as Offer).model;
}

function conflict({ name, version, digest }: ServedModel, offers: ReadonlyMap<string, Offer>): FailedModel {
  const counts = [...offers.values()].map(({ workers }) => workers).sort((a, b) => b - a);
  return {
    name,
    version,
    reason: `workers serve ${offers.size} different models under this name and version (${counts.join(", ")} workers); using digest ${digest}`,
  };
}

function failedEverywhere(
  announcements: readonly Announcement[],
  byName: ReadonlyMap<string, readonly ServedModel[]>,
): FailedModel[] {
  const failures = new Map<string, FailedModel>();
  for (const failure of announcements.flatMap(({ failed }) => failed)) {
    const versions = byName.get(failure.name);
    const loaded =
      failure.version === undefined
        ? versions !== undefined
        : versions?.some(({ version }) => version === failure.version);
    if (loaded !== true) failures.set(`${failure.name}/${failure.version ?? ""}`, failure);
  }
  return [...failures.values()];
}

/** Versions are decimal integers without leading zeros, of any length. */
function compareVersions(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : Number(a > b);
}

function lookUp(
  byName: ReadonlyMap<string, readonly ServedModel[]>,
  name: string,
  version: string | undefined,
): ServedModel | undefined {
  const versions = byName.get(name);
  return version === undefined ? versions?.at(-1) : versions?.find((model) => model.version === version);
}

/** @throws always */
function unknown(failed: readonly FailedModel[], name: string, version: string | undefined): never {
  if (version !== undefined && !/^\d+$/.test(version)) {
    throw new InferenceError(
      "invalid_argument",
      `failed to get model version from specified version string '${version}', version should be an integral value > 0`,
    );
  }
  const unknown = `Request for unknown model: '${name}'`;
  if (version === undefined) {
    const known = failed.some((failure) => failure.name === name);
    throw new InferenceError("unknown_model", `${unknown} ${known ? "has no available versions" : "is not found"}`);
  }
  if (failed.some((failure) => failure.name === name && failure.version === version)) {
    throw new InferenceError("model_unavailable", `${unknown} version ${version} is not at ready state`);
  }
  throw new InferenceError("unknown_model", `${unknown} version ${version} is not found`);
}
