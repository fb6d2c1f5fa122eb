/** Whether a quantity grows over the minutes of a run. */
import { median } from "../support/statistics.js";

/** The quantities of a minute, by name. */
export type Sample = Readonly<Record<string, number>>;

export interface Growth {
  readonly name: string;
  /** Medians of the second sixth of the minutes, when caches are full, and of the last sixth. */
  readonly early: number;
  readonly late: number;
  readonly grows: boolean;
}

/** What memory, in MB, and descriptors may vary by between two minutes. */
const VARIES_BY = 4;
const VARIES_SHARE = 0.1;

export function growth(samples: readonly Sample[]): Growth[] {
  const sixth = Math.floor(samples.length / 6);
  const names = new Set(samples.flatMap((sample) => Object.keys(sample)));
  return [...names].map((name) => {
    const of = (some: readonly Sample[]) => median(some.flatMap((sample) => sample[name] ?? []));
    const [early, late] = [of(samples.slice(sixth, 2 * sixth)), of(samples.slice(-sixth))];
    return { name, early, late, grows: !(late <= early * (1 + VARIES_SHARE) + VARIES_BY) };
  });
}

export function rendered(rows: readonly Growth[]): string {
  const lines = rows.map(
    ({ name, early, late, grows }) =>
      `| ${name} | ${early.toFixed(1)} | ${late.toFixed(1)} | ${grows ? "grows" : "flat"} |`,
  );
  return ["| what | early | late | |", "| --- | ---: | ---: | --- |", ...lines].join("\n");
}
