/** Which models of its repository a worker loads, by its settings and by the fleet's wish. */
import type { Announcement } from "#shared/contract/announcement.js";
import type { Wish } from "#shared/queue/wish.js";

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
