/** Sequences of `accumulate` that take step after step until a test has seen enough. */
import { add, type Said } from "../ask.js";

export interface Steps {
  /** How many steps every sequence has taken at least. */
  readonly least: number;
  /** Ends the sequences. @returns every answer that was not the sum of its sequence so far */
  stop(): Promise<readonly Said[]>;
}

/** @param first the id of the first sequence */
export function takeSteps(url: string, count: number, first = 1): Steps {
  const taken = Array<number>(count).fill(0);
  const wrong: Said[] = [];
  const ending = new AbortController();
  const running = taken.map(async (_, i) => {
    for (let sum = 1; !ending.signal.aborted; sum++) {
      const said = await add(url, { sequence: first + i, value: 1, start: sum === 1 });
      if (said.status !== 200 || said.output !== sum || said.version !== "1") wrong.push(said);
      taken[i] = sum;
    }
  });
  return {
    get least() {
      return Math.min(...taken);
    },
    async stop() {
      ending.abort();
      await Promise.all(running);
      return wrong;
    },
  };
}
