/** Which models of its repository a worker loads, by its settings and by the fleet's wish. */
import type { Announcement } from "#shared/contract/announcement.js";
import type { Wish } from "#shared/queue/wish.js";
import type { ScannedModel } from "../models/scan.js";
import { stepsOf } from "../models/validate/ensemble.js";

export interface ModelChoice {
  readonly isWanted: (name: string) => boolean;
  /** The models that the settings or clients name. It is a failure if there is none of the name. */
  readonly named: readonly string[];
  /** Configurations as JSON, in place of the models' own. */
  readonly configs: ReadonlyMap<string, string>;
}

interface ChoiceSettings {
  readonly BATON_MODELS?: readonly string[] | undefined;
  readonly BATON_LOAD_MODELS: readonly string[];
}

/** Stands for all models of the repository in `BATON_LOAD_MODELS`. */
const ALL = "*";

/** @param wish undefined if clients cannot load and unload models */
export function chooseModels({ BATON_MODELS, BATON_LOAD_MODELS }: ChoiceSettings, wish: Wish | undefined): ModelChoice {
  const isServed = (name: string) => BATON_MODELS?.includes(name) ?? true;
  if (wish === undefined) return { isWanted: isServed, named: BATON_MODELS ?? [], configs: new Map() };
  const { models } = wish;
  const isFirst = (name: string) => BATON_LOAD_MODELS.includes(ALL) || BATON_LOAD_MODELS.includes(name);
  const isWanted = (name: string) => isServed(name) && (models.get(name)?.isLoaded ?? isFirst(name));
  const names = new Set([...BATON_LOAD_MODELS.filter((name) => name !== ALL), ...models.keys()]);
  const configs = [...models].flatMap(([name, { config }]) => (config === undefined ? [] : [[name, config] as const]));
  return { isWanted, named: [...names].filter(isWanted), configs: new Map(configs) };
}

/**
 * Adds the models that the steps of wanted ensembles run, as Triton does. Only a client that has
 * unloaded such a model after the ensemble was loaded keeps it away.
 */
export function withSteps(choice: ModelChoice, scanned: readonly ScannedModel[], wish: Wish | undefined): ModelChoice {
  const wanted = new Set(scanned.flatMap(({ name }) => (choice.isWanted(name) ? [name] : [])));
  const numberOf = (name: string) => wish?.models.get(name)?.number ?? 0;
  const isUnloaded = (step: string, by: string) =>
    wish?.models.get(step)?.isLoaded === false && numberOf(step) > numberOf(by);
  // Grows while it is read, so the steps of an ensemble within an ensemble are found, too.
  for (const name of wanted) {
    const model = scanned.find((one) => one.name === name);
    const steps = model?.kind === "ensemble" ? stepsOf(model.config) : [];
    for (const step of steps) if (!isUnloaded(step, name)) wanted.add(step);
  }
  return { ...choice, isWanted: (name) => wanted.has(name) };
}

/** The ensembles of which the model of a step is not there, or is not wanted. */
export function bereftEnsembles({ isWanted }: ModelChoice, scanned: readonly ScannedModel[]): ReadonlySet<string> {
  const there = new Set(scanned.flatMap(({ name }) => (isWanted(name) ? [name] : [])));
  const bereft = new Set<string>();
  for (let size = -1; size < bereft.size;) {
    size = bereft.size;
    for (const model of scanned) {
      const steps = model.kind === "ensemble" ? stepsOf(model.config) : [];
      if (steps.some((step) => !there.has(step) || bereft.has(step))) bereft.add(model.name);
    }
  }
  return bereft;
}

/**
 * Whether a worker must load its models anew. It need not for a wish that has been taken back,
 * if the wish that holds again asks for what the worker does already.
 * @param read the wish that the worker obeys
 * @param serves the names of its models
 */
export function isBehind(
  settings: ChoiceSettings,
  { read, serves }: { readonly read: Wish; readonly serves: ReadonlySet<string> },
  wish: Wish,
): boolean {
  const { isWanted } = chooseModels(settings, wish);
  return [...new Set([...read.models.keys(), ...wish.models.keys()])].some((name) => {
    const before = read.models.get(name)?.number;
    const now = wish.models.get(name)?.number;
    return before !== now && ((now ?? 0) > read.number || isWanted(name) || serves.has(name));
  });
}

/** @returns what the announcement says about the wish; undefined without a wish */
export function obedience(
  wish: Wish | undefined,
  { isWanted }: ModelChoice,
  scanned: readonly { readonly name: string }[],
): Announcement["obeys"] {
  if (wish === undefined) return undefined;
  const idle = [...new Set(scanned.map(({ name }) => name))].filter((name) => !isWanted(name));
  return { number: wish.number, idle: idle.map((name) => ({ name, wasUnloaded: wish.models.has(name) })) };
}
