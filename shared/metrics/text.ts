/**
 * The text of Prometheus' exposition format (0.0.4). A series keeps the text of its lines up to the
 * value, so that a page only joins texts and numbers.
 */
import type { Family } from "./families.js";

/**
 * The values of a series' labels. A label of the family that is absent has the value "". Labels
 * that begin with `_` stand behind the family's: a model's configuration has them (`metric_tags`).
 */
export type Labels = Readonly<Record<string, string>>;

/** The lines before a family's samples. */
export function headOf(name: string, { help, type }: Family): string {
  return `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}\n# TYPE ${name} ${type}\n`;
}

/**
 * The text of a series' lines up to the value, one for each cell: of a histogram the buckets with
 * the bucket `+Inf`, and then the sum and the count.
 */
export function linesOf(name: string, { type, labels: names, bounds = [] }: Family, labels: Labels): string[] {
  const own = Object.keys(labels).filter((label) => label.startsWith("_"));
  const listed = [...names, ...own].map((label) => `${label}="${escaped(labels[label] ?? "")}"`);
  const line = (suffix: string, ...more: string[]): string => {
    const all = [...listed, ...more].join(",");
    return `${name}${suffix}${all === "" ? "" : `{${all}}`} `;
  };
  if (type !== "histogram") return [line("")];
  const buckets = [...bounds.map(valueText), "+Inf"].map((bound) => line("_bucket", `le="${bound}"`));
  return [...buckets, line("_sum"), line("_count")];
}

/** A number as Prometheus reads it. */
export function valueText(value: number): string {
  if (value === Infinity) return "+Inf";
  return value === -Infinity ? "-Inf" : String(value);
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
