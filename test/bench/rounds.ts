/** Rounds of all scenarios, every second one in reverse: what slowly changes on a machine then favours nobody. */
import { measureFleet, LARGE_SEQUENCES, scenarios, type Round, type Setting } from "./scenarios.js";
import { large } from "./models.js";

export interface RoundsPlan {
  readonly rounds: number;
  /** Only these scenarios; all where it is empty. */
  readonly only: readonly (keyof Round)[];
  readonly progress: (line: string) => void;
}

export async function runRounds(setting: Setting, { rounds, only, progress }: RoundsPlan): Promise<Partial<Round>[]> {
  progress("warm-up");
  let { meanBatch } = await measureFleet(setting, large, LARGE_SEQUENCES);
  const run = scenarios(setting, () => meanBatch);
  const names = (Object.keys(run) as (keyof Round)[]).filter((name) => only.length === 0 || only.includes(name));
  const done: Partial<Round>[] = [];
  for (let i = 0; i < rounds; i++) {
    const round: Partial<Round> = {};
    for (const name of i % 2 === 0 ? names : [...names].reverse()) {
      progress(`round ${i + 1} of ${rounds}: ${name}`);
      Object.assign(round, { [name]: await run[name]() });
      if (round.fleet !== undefined) ({ meanBatch } = round.fleet);
    }
    done.push(round);
  }
  return done;
}
