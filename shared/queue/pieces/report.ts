/**
 * The reports of processes: which parts there are, and how they are written and read. report.lua
 * has the keys. All numbers are sums since the start of the process, so a report that comes twice,
 * or a lost one, changes nothing.
 */
import { report } from "../../records/reports.js";

/** The sums of a version, in the order of a report; times in µs. */
export const versionSums = [
  "success",
  "fail",
  "rows",
  "runs",
  "failUs",
  "requestUs",
  "queueUs",
  "inputUs",
  "inferUs",
  "outputUs",
  "takeovers",
] as const;

/** The sums of the runs with one number of rows. */
export const runSums = ["runs", "inputUs", "inferUs", "outputUs"] as const;

/** The sums of the responses of generators with one index. */
export const responseSums = ["success", "successUs", "fail", "failUs", "cancel", "cancelUs"] as const;

/** The sums of the response cache of a version; times in µs. */
export const cacheSums = ["hits", "hitUs", "misses", "missUs"] as const;

/**
 * The upper bounds of the times from admission to commit, in ms, of requests that succeeded. A
 * report counts them by bucket, and those beyond all bounds last.
 */
export const timeBounds = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000] as const;

/** The responses from this index on count together. */
export const LAST_RESPONSE = 64;
/** Indexes of responses whose sums stand in one part, so that a part keeps its size. */
export const RESPONSES_A_PART = 8;

const numbered = ["runs", "responses", "times", "cache", "jobs"] as const;

/**
 * `n` is the number of rows of a run, or the first index of responses; 0 for the others. The
 * part of jobs has how many jobs the worker holds, and says nothing once the worker is gone.
 */
export type PartName = { readonly of: "version" } | { readonly of: (typeof numbered)[number]; readonly n: number };

/** A part of the figures of a version, of one process or of the past. */
export interface ReportPart {
  /** Undefined for a part of the past. */
  readonly process?: string | undefined;
  readonly model: string;
  readonly version: string;
  readonly part: PartName;
  /** When the last request ended, in Redis ms; 0 for a part without a time. */
  readonly last: number;
  /** In the order above. A report of another version of Baton may have more or fewer. */
  readonly sums: readonly number[];
}

/** A field of the hash of reports, with its value. */
export interface ReportField {
  readonly field: string;
  readonly figures: string;
}

/** The page before the first has the load of a worker (worker-load.ts). */
export const FIRST_PAGE = 1;

/** @param n how many pages the process had before */
export function pageField(process: string, n: number): string {
  return `${process} ${n}`;
}

/** @param parts from `partText` */
export function pageText(parts: readonly string[]): string {
  return parts.join("\n");
}

/** Names a part among the parts of all versions. A model's name holds no slash. */
export function subjectOf({ model, version, part }: Pick<ReportPart, "model" | "version" | "part">): string {
  const name = `${model}/${version}`;
  return part.of === "version" ? name : `${name}/${part.of} ${part.n}`;
}

/** @param sums whole numbers */
export function partText(subject: string, last: number, sums: readonly number[]): string {
  return report.write({ subject, last, sums: sums.join(" ") });
}

/** Adds place by place. A place that only one report has counts, too. */
export function addedSums(a: readonly number[] = [], b: readonly number[] = []): number[] {
  return Array.from({ length: Math.max(a.length, b.length) }, (_, i) => (a[i] ?? 0) + (b[i] ?? 0));
}

/** The parts in the hash of the past. @param values of all fields */
export function partsOfPast(values: readonly string[]): ReportPart[] {
  return values.flatMap(partsOfPage);
}

/** The parts in the hash of reports. @param fields each field of the hash, then its value */
export function partsOfReports(fields: readonly string[]): ReportPart[] {
  return fields.flatMap((field, i) => {
    const process = i % 2 === 0 && /^(.*) \d+$/.exec(field)?.[1];
    return process === false || process === undefined
      ? []
      : partsOfPage(fields[i + 1] ?? "").map((part) => ({ ...part, process }));
  });
}

/** @returns nothing for the number of a process's pages, a load, and the text of a person */
export function partsOfPage(text: string): ReportPart[] {
  return text.split("\n").flatMap((line) => parsePart(line) ?? []);
}

function parsePart(text: string): ReportPart | undefined {
  const { subject, last, sums } = report.read(text) ?? {};
  if (subject === undefined || last === undefined || sums === undefined) return undefined;
  const [, model, version, word, n] = /^([^/]+)\/([^/]+)(?:\/([a-z]+) (\d+))?$/.exec(subject) ?? [];
  const of = numbered.find((one) => one === word);
  // A later version of Baton may have further parts.
  if (model === undefined || version === undefined || (word !== undefined && of === undefined)) return undefined;
  const part: PartName = of === undefined ? { of: "version" } : { of, n: Number(n) };
  return { model, version, part, last, sums: sums.trim().split(" ").map(Number) };
}
