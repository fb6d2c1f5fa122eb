/** Rounds of all scenarios, every second one in reverse: what slowly changes on a machine then favours nobody. */

export type Scenarios<Round> = { readonly [Name in keyof Round]-?: () => Promise<Round[Name]> };

export interface RoundsPlan<Name> {
  readonly rounds: number;
  /** In this order, or the other way round. */
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
