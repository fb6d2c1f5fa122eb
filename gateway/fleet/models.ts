/**
 * Which models the fleet serves, worked out from the announcements of its workers. The gateway has
 * no copy of the model repository.
 */
import type { Announcement, ServedModel } from "#shared/contract/announcement.js";
import { InferenceError } from "#shared/errors.js";
import { pinOf, pinText, type Pin } from "#shared/queue/address.js";
import type { Refusal } from "#shared/queue/refusals.js";

/** A model that no worker can serve, or that workers serve otherwise than announced. */
interface FailedModel {
  readonly name: string;
  /** Undefined if no worker could read any version. */
  readonly version?: string | undefined;
  readonly reason: string;
}

/** A model as a request names it. */
export interface ModelName {
  readonly model: string;
  /** Undefined if the request names no version; then the request is for the latest version. */
  readonly version: string | undefined;
}

export interface ModelDirectory {
  /**
   * Finds the named version, otherwise the latest. Also finds a model whose workers have all gone
   * lately: its requests queue until a worker is back.
   * @throws InferenceError in Triton's words
   */
  find(name: string, version?: string): ServedModel;
  /**
   * Finds the model for the next steps of sequences that began with this pin.
   * @returns undefined if no worker has served the pin lately
   */
  pinned(name: string, pin: Pin): ServedModel | undefined;
  /**
   * Finds a model for a sequence whose own version, or files, no worker serves any more: the latest
   * version that says that it takes the states of the sequence's version.
   */
  heir(name: string, pin: Pin): ServedModel | undefined;
  /**
   * The other versions of the model, and other files under its own version, that sequences may be
   * pinned to; the latest version comes first.
   */
  others(model: ServedModel): readonly ServedModel[];
  /**
   * How many requests of a model all its workers together hold at once; one worker's number if none
   * lives.
   * @returns undefined if some worker does not say so
   */
  takenAtOnce(model: ServedModel): number | undefined;
  /** Whether a live worker serves the model. */
  isServed(model: ServedModel): boolean;
  /** Every version of every model that a worker serves, sorted by name and then version. */
  all(): readonly ServedModel[];
  /**
   * Models that no worker could load, and models that workers disagree about. Workers still serve
   * the latter.
   */
  failed(): readonly FailedModel[];
  /** Models that workers have in their repositories and that no worker serves. */
  idle(): readonly IdleModel[];
  /** Why workers serve a model as it was, and not as it is now; undefined if they do not. */
  outdated(name: string): string | undefined;
}

/** A model that clients may load. */
export interface IdleModel {
  readonly name: string;
  /** Whether a client has unloaded it. */
  readonly wasUnloaded: boolean;
}

/**
 * @param announcements of live workers
 * @param lapsed of workers that have gone lately
 * @param missed the lapsed workers that did not leave by themselves, so that they may be back soon
 * @param refusals why workers go on with the models that they have, by their names
 */
export function directoryOf(
  announcements: readonly Announcement[],
  lapsed: readonly Announcement[] = [],
  missed: readonly Announcement[] = lapsed,
  refusals: ReadonlyMap<string, Refusal> = new Map(),
): ModelDirectory {
  const conflicts: FailedModel[] = [];
  const byName = byNameAndVersion(announcements, conflicts);
  const lately = byNameAndVersion(lapsed, []);
  const served = [...byName.keys()].sort().flatMap((name) => byName.get(name) ?? []);
  const failed = failedEverywhere(announcements, byName);
  const pins = byPin(announcements, missed, lapsed);
  const taken = takenTogether(announcements);
  const idle = idleModels(announcements, byName);
  const unloaded = new Set(idle.flatMap(({ name, wasUnloaded }) => (wasUnloaded ? [name] : [])));
  const refused = announcements.flatMap(({ worker }) => refusals.get(worker)?.failed ?? []);
  return {
    pinned: (name, pin) => pins.get(name)?.get(pinText(pin)),
    heir: (name, { version }) => byName.get(name)?.findLast((model) => takesStatesOf(model, version)),
    others: ({ name, version, digest }) => {
      const known = pins.get(name);
      if (known === undefined || known.size < 2) return [];
      const others = [...known.values()].filter((other) => other.version !== version || other.digest !== digest);
      return others.sort((a, b) => compareVersions(b.version, a.version));
    },
    find: (name, version) =>
      lookUp(byName, name, version) ??
      (unloaded.has(name) ? throwUnloaded(name) : lookUp(lately, name, version)) ??
      throwUnknown(failed, name, version),
    takenAtOnce: (model) => (taken.has(pinnedName(model)) ? taken.get(pinnedName(model)) : model.takes),
    isServed: (model) => served.includes(model),
    all: () => served,
    failed: () => [...failed, ...conflicts],
    idle: () => idle,
    outdated: (name) => refused.find((failure) => failure.name === name)?.reason,
  };
}

function takesStatesOf({ sequence }: ServedModel, version: string): boolean {
  const versions = sequence?.takesStatesOf ?? [];
  return versions.includes("*") || versions.includes(version);
}

const pinnedName = (model: ServedModel): string => `${model.name}/${pinText(pinOf(model))}`;

/** How many requests all workers of each model hold at once; undefined if a worker does not say. */
function takenTogether(announcements: readonly Announcement[]): ReadonlyMap<string, number | undefined> {
  const sums = new Map<string, number | undefined>();
  for (const model of announcements.flatMap(({ models }) => models)) {
    const name = pinnedName(model);
    const before = sums.has(name) ? sums.get(name) : 0;
    sums.set(name, before === undefined || model.takes === undefined ? undefined : before + model.takes);
  }
  return sums;
}

/**
 * All models for the next steps of sequences, by the name of the model, and the pin. A model of
 * workers that left is retired, unless no worker serves the model now: the only worker may just
 * restart.
 */
function byPin(
  announcements: readonly Announcement[],
  missed: readonly Announcement[],
  lapsed: readonly Announcement[],
): Map<string, Map<string, ServedModel>> {
  const served = [...announcements, ...missed].flatMap(({ models }) => models);
  const names = new Set(served.map(({ name }) => name));
  const others = lapsed.flatMap(({ models }) => models).filter(({ name }) => !names.has(name));
  const byName = new Map<string, Map<string, ServedModel>>();
  for (const model of [...served, ...others]) {
    const pins = byName.get(model.name) ?? new Map<string, ServedModel>();
    byName.set(model.name, pins);
    const pin = pinText(pinOf(model));
    if (!pins.has(pin)) pins.set(pin, model);
  }
  return byName;
}

/** @param conflicts gains an entry for each model that workers disagree about */
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

/** A model that workers serve under a name and version, perhaps beside others. */
interface Offer {
  readonly model: ServedModel;
  /** How many workers serve this model. */
  workers: number;
}

/**
 * Groups by name and version, then by digest. A model's name holds no slash, so name and version
 * cannot run together.
 */
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

/**
 * Chooses the model that most workers serve. Ties go to the smaller digest, so that all gateways
 * choose alike.
 */
function prevailing(offers: ReadonlyMap<string, Offer>): ServedModel {
  const prevails = (a: Offer, b: Offer) =>
    a.workers > b.workers || (a.workers === b.workers && a.model.digest < b.model.digest);
  return [...offers.values()].reduce((best, one) => (prevails(one, best) ? one : best)).model;
}

function conflict({ name, version, digest }: ServedModel, offers: ReadonlyMap<string, Offer>): FailedModel {
  const counts = [...offers.values()].map(({ workers }) => workers).sort((a, b) => b - a);
  return {
    name,
    version,
    reason: `workers serve ${offers.size} different models under this name and version (${counts.join(", ")} workers); using digest ${digest}`,
  };
}

/** Models that some worker could not load and no worker serves. */
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

/** A model is unloaded if the newest wish that a worker has read says so. */
function idleModels(
  announcements: readonly Announcement[],
  byName: ReadonlyMap<string, readonly ServedModel[]>,
): IdleModel[] {
  const newestFirst = announcements.flatMap(({ obeys }) => obeys ?? []).sort((a, b) => b.number - a.number);
  const idle = new Map<string, IdleModel>();
  for (const model of newestFirst.flatMap((obeys) => obeys.idle)) {
    if (!byName.has(model.name) && !idle.has(model.name)) idle.set(model.name, model);
  }
  return [...idle.values()];
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

/** The refusal of a model that is not there, or not there for the caller, in Triton's words. */
export function unknownModel(name: string, version?: string): InferenceError {
  if (version !== undefined && !/^\d+$/.test(version)) {
    const text = `failed to get model version from specified version string '${version}', version should be an integral value > 0`;
    return new InferenceError("invalid_argument", text);
  }
  const which = version === undefined ? "" : ` version ${version}`;
  return new InferenceError("unknown_model", `Request for unknown model: '${name}'${which} is not found`);
}

/**
 * The directory as a caller sees it who may use some models only: no other model exists.
 * @param mayUse whether the caller may use the model of this name
 * @param found called with each model that the caller finds
 */
export function visible(
  directory: ModelDirectory,
  mayUse: (name: string) => boolean,
  found: (model: ServedModel) => void = () => undefined,
): ModelDirectory {
  const isVisible = ({ name }: { readonly name: string }): boolean => mayUse(name);
  return {
    pinned: (name, pin) => (mayUse(name) ? directory.pinned(name, pin) : undefined),
    heir: (name, pin) => (mayUse(name) ? directory.heir(name, pin) : undefined),
    others: (model) => directory.others(model),
    find(name, version) {
      if (!mayUse(name)) throw unknownModel(name, version);
      const model = directory.find(name, version);
      found(model);
      return model;
    },
    takenAtOnce: (model) => directory.takenAtOnce(model),
    isServed: (model) => directory.isServed(model),
    all: () => directory.all().filter(isVisible),
    failed: () => directory.failed().filter(isVisible),
    idle: () => directory.idle().filter(isVisible),
    outdated: (name) => (mayUse(name) ? directory.outdated(name) : undefined),
  };
}

/** @throws always */
function throwUnloaded(name: string): never {
  throw new InferenceError("model_unavailable", `Request for unknown model: '${name}' has no available versions`);
}

/** @throws always */
function throwUnknown(failed: readonly FailedModel[], name: string, version: string | undefined): never {
  const known = failed.filter((failure) => failure.name === name);
  const unknown = `Request for unknown model: '${name}'`;
  if (version === undefined && known.length > 0) {
    throw new InferenceError("unknown_model", `${unknown} has no available versions`);
  }
  if (version !== undefined && known.some((failure) => failure.version === version)) {
    throw new InferenceError("model_unavailable", `${unknown} version ${version} is not at ready state`);
  }
  throw unknownModel(name, version);
}
