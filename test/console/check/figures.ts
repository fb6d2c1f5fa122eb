/** Figures with their bounds. */

export interface Figure {
  readonly name: string;
  readonly value: string;
  readonly bound: string;
  readonly isMet: boolean;
  /** A sentence for each fault that the figure counts. */
  readonly faults?: readonly string[];
}

export function atMost(name: string, value: number, bound: number, unit = ""): Figure {
  return { name, value: text(value, unit), bound: `≤ ${text(bound, unit)}`, isMet: value <= bound };
}

export function atLeast(name: string, value: number, bound: number): Figure {
  return { name, value: text(value, ""), bound: `≥ ${text(bound, "")}`, isMet: value >= bound };
}

/** A figure whose bound is that there is no fault. */
export function none(name: string, faults: readonly string[]): Figure {
  return { ...atMost(name, faults.length, 0), faults };
}

/** @returns the figure as a line, with its faults below */
export function line({ name, value, bound, isMet, faults = [] }: Figure): string {
  const head = `${isMet ? "ok    " : "MISSED"} ${name.padEnd(64)} ${value.padStart(9)}   ${bound}`;
  return [head, ...faults.map((fault) => `         ${fault}`)].join("\n");
}

function text(value: number, unit: string): string {
  const digits = unit === "" || Number.isInteger(value) ? {} : { maximumFractionDigits: 1 };
  return `${value.toLocaleString("en", digits)}${unit && ` ${unit}`}`;
}
