/** A change of several things: what came of it, in one sentence for all. */
import { Refusal } from "../client/refusal.js";
import { countText } from "../view/figures.js";

/** The name of a thing, for one and for several. */
export type Noun = readonly [one: string, several: string];

export function countOf(count: number, [one, several]: Noun): string {
  return `${countText(count)} ${count === 1 ? one : several}`;
}

export interface Summary {
  readonly isWhole: boolean;
  readonly text: string;
}

/** @param failures why things were not changed: an error for each */
export function summaryOf(verb: string, noun: Noun, done: number, failures: readonly Error[]): Summary {
  if (failures.length === 0) return { isWhole: true, text: `${verb}: ${countOf(done, noun)}.` };
  const reasons = new Map<string, { count: number; readonly first: Error }>();
  for (const error of failures) {
    const name = error instanceof Refusal ? error.code : error.message;
    const reason = reasons.get(name);
    if (reason === undefined) reasons.set(name, { count: 1, first: error });
    else reason.count += 1;
  }
  const told = [...reasons].map(([name, { count, first }]) => `${countText(count)} × ${name}${detailOf(first)}`);
  const of = countOf(done + failures.length, noun);
  return { isWhole: false, text: `${verb}: ${countText(done)} of ${of}. Failed: ${told.join("; ")}.` };
}

function detailOf(error: Error): string {
  if (!(error instanceof Refusal)) return "";
  const request = error.requestId === undefined ? "" : ` (request ${error.requestId})`;
  return ` – ${error.message}${request}`;
}
