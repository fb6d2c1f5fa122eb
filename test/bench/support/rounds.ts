/**
 * Which scenarios run, and in which order. Every second round runs in reverse, so that a slow
 * change of the machine favours no scenario.
 */

export type Scenarios<Round> = { readonly [Name in keyof Round]-?: () => Promise<Round[Name]> };

export interface RoundsPlan<Name> {
  readonly rounds: number;
  /** In this order, or in reverse. */
  readonly names: readonly Name[];
  readonly progress: (line: string) => void;
}

export async function runRounds<Round extends object>(
  scenarios: Scenarios<Round>,
  { rounds, names, progress }: RoundsPlan<keyof Round & string>,
): Promise<Partial<Round>[]> {
  const done: Partial<Round>[] = [];
  for (let i = 0; i < rounds; i++) {
    const round: Partial<Round> = {};
    for (const name of i % 2 === 0 ? names : [...names].reverse()) {
      progress(`round ${i + 1} of ${rounds}: ${name}`);
      round[name] = await scenarios[name]();
    }
    done.push(round);
  }
  return done;
}

/** The names of each group's scenarios. */
type Groups = Readonly<Record<string, readonly string[]>>;

/**
 * Reads `--only`: names of single scenarios, or of a whole group.
 * @returns the scenarios, in each group's own order
 * @throws Error for a name that does not exist
 */
export function chosen<All extends Groups>(only: string, groups: All): All {
  const wanted = only.split(",").filter((name) => name !== "");
  const known = [...Object.keys(groups), ...Object.values(groups).flat()];
  const unknown = wanted.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new Error(`--only ${unknown.join()}: there is ${known.join(", ")}`);
  const left = Object.entries(groups).map(([group, names]) => [
    group,
    names.filter((name) => wanted.includes(group) || wanted.includes(name)),
  ]);
  return Object.fromEntries(left) as All;
}
