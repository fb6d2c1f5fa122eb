/**
 * The sums over all processes and the past, for the observer. Its turn brings the reports, and the
 * past is long and changes rarely. So the observer reads the past only if it has changed.
 */
import { readReports, type Reports } from "#shared/queue/admission/read-reports.js";
import type { ReportPart } from "#shared/queue/pieces/report.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { sumsByModel, type SumsAt } from "./point.js";
import { totalsOf } from "./totals.js";

interface Read {
  readonly parts: readonly ReportPart[];
  readonly sums: SumsAt["sums"];
}

export class SumsReader {
  readonly #redis: RedisClient;
  /** The past, at a version of the fleet. */
  #past: { readonly version: string | undefined; readonly parts: Reports["past"] } | undefined;
  #before: Read | undefined;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /**
   * Returns the reports, and the sums with the past. A burial changes the past, and with it the
   * members of the fleet. The note of a gateway changes the past alone: the report of a process is
   * then missing. If that process has come back already, a sum has fallen.
   * @param reports undefined if they have to be read, too
   * @param version of the fleet
   * @throws the client's error if Redis does not answer
   */
  async read(reports: readonly ReportPart[] | undefined, version: string | undefined): Promise<Read> {
    if (reports !== undefined && this.#past !== undefined && this.#past.version === version) {
      const read = readOf(reports, this.#past.parts);
      if (this.#before !== undefined && !isLess(this.#before, read)) return (this.#before = read);
    }
    const all = await readReports(this.#redis);
    this.#past = { version, parts: all.past };
    return (this.#before = readOf(all.reports, all.past));
  }

  /** Lets the next call read everything. */
  forget(): void {
    this.#past = undefined;
    this.#before = undefined;
  }
}

function readOf(parts: readonly ReportPart[], past: Reports["past"]): Read {
  return { parts, sums: sumsOf([...parts, ...past]) };
}

/** Whether a process is missing that had a report before, or a sum has fallen. */
function isLess(before: Read, now: Read): boolean {
  const there = new Set(now.parts.map(({ process }) => process));
  return before.parts.some(({ process }) => !there.has(process)) || hasFallen(before.sums, now.sums);
}

/**
 * Of all versions, also those that no worker serves now: a model that comes back would have done in
 * one round what it has done in its whole life.
 */
function sumsOf(parts: readonly ReportPart[]): SumsAt["sums"] {
  const named = parts.map(({ model: name, version }) => [`${name}/${version}`, { name, version }] as const);
  return sumsByModel([...new Map(named).values()], totalsOf(parts));
}

function hasFallen(before: SumsAt["sums"], sums: SumsAt["sums"]): boolean {
  return [...before].some(([model, { success, fail }]) => {
    const now = sums.get(model);
    return (now?.success ?? 0) < success || (now?.fail ?? 0) < fail;
  });
}
