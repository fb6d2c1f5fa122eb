/** Reads what the processes of a fleet have written, and joins it by request. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { stages, type Passed } from "#shared/stages.js";

export interface Recorded extends Passed {
  /** In ms since 1970, with a fraction. The clocks of one machine's processes agree. */
  readonly at: number;
}

const MODEL = "the model";
/** What lies between each stage and the stage before it. The time of the model itself is apart. */
export const parts = [
  "waits for the admission call that is under way",
  "admission call",
  "in the ready stream, beyond the admission's answer",
  "waits in the worker for its batch",
  "looks up states, stacks tensors",
  "to the model's thread and back, waits for the model",
  "waits for its settlement",
  "commit",
  "reply over NATS",
  MODEL,
] as const;

export interface StageTimes {
  /** How many requests the means are of. */
  readonly steps: number;
  /** How many others passed a stage never or twice. */
  readonly irregular: number;
  /** In microseconds, in the order of `parts`. */
  readonly us: readonly number[];
}

interface Way {
  readonly at: (number | undefined)[];
  ranMs: number;
  isRegular: boolean;
}

/**
 * @param from only requests that were checked after this time count, in ms since 1970
 * @param until and before this time
 */
export function readStages(folder: string, from = 0, until = Infinity): StageTimes {
  const ways = new Map<string, Way>();
  for (const name of readdirSync(folder).filter((one) => one.endsWith(".jsonl"))) {
    for (const line of readFileSync(join(folder, name), "utf8").split("\n")) {
      if (line !== "") add(ways, JSON.parse(line) as Recorded);
    }
  }
  const sums = parts.map(() => 0);
  let [steps, irregular] = [0, 0];
  for (const { at, ranMs, isRegular } of ways.values()) {
    const checked = at[0] ?? 0;
    if (checked < from || checked >= until) continue;
    if (!isRegular || stages.some((_, place) => at[place] === undefined)) {
      irregular++;
      continue;
    }
    steps++;
    for (const [place, part] of parts.entries()) {
      const ms = part === MODEL ? ranMs : (at[place + 1] ?? 0) - (at[place] ?? 0);
      sums[place] = (sums[place] ?? 0) + ms - (stages[place + 1] === "ran" ? ranMs : 0);
    }
  }
  return { steps, irregular, us: sums.map((ms) => (ms * 1_000) / steps) };
}

function add(ways: Map<string, Way>, { stage, at, requests, ranMs = 0 }: Recorded): void {
  const place = stages.indexOf(stage);
  for (const name of requests) {
    let way = ways.get(name);
    if (way === undefined) ways.set(name, (way = { at: [], ranMs: 0, isRegular: true }));
    way.isRegular &&= way.at[place] === undefined;
    way.at[place] = at;
    way.ranMs += ranMs;
  }
}
