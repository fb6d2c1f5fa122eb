/**
 * The expected text of a stream, from tokens computed beforehand, and the check of a stream's
 * answer.
 */
import { readFileSync } from "node:fs";
import type { Answered } from "./events.js";
import type { Vocabulary } from "./vocabulary.js";

/** A prompt and its greedy answer, from streams/reference.ts. */
export interface Reference {
  readonly prompt: readonly number[];
  readonly tokens: readonly number[];
}

export function readReferences(file: string): Reference[] {
  return JSON.parse(readFileSync(file, "utf8")) as Reference[];
}

export interface Expected {
  /**
   * The text of each token by itself. Undefined for a token that is no whole text: such a token may
   * come without an event, and with or after another token's.
   */
  readonly pieces: readonly (string | undefined)[];
  /** The text of all tokens. */
  readonly text: string;
}

export function expectedOf(vocabulary: Vocabulary, tokens: readonly number[]): Expected {
  const pieces = tokens.map((token) => (vocabulary.isPlain(token) ? vocabulary.textOf([token]) : undefined));
  return { pieces, text: vocabulary.textOf(tokens) };
}

/**
 * Expects every index once and in order, with the text of its token (no two tokens have the same
 * text), and the right end.
 * @returns the first fault; undefined if there is none
 */
export function faultOf({ events, done }: Answered, { pieces, text }: Expected): string | undefined {
  let next = 0;
  let said = "";
  for (const { index, text: heard, finish } of events) {
    while (next < index && pieces[next] === undefined) next++;
    if (index !== next) return `index ${index} came where ${next} was due`;
    const whole = next === 0 || pieces[next - 1] !== undefined;
    const piece = pieces[next++];
    if (piece !== undefined && (whole ? heard !== piece : !heard.endsWith(piece)))
      return `token ${index} says ${JSON.stringify(heard)}, not ${JSON.stringify(piece)}`;
    const due = next === pieces.length ? "length" : null;
    if (finish !== due) return `token ${index} of ${pieces.length} came with the ending ${finish}`;
    said += heard;
  }
  if (next !== pieces.length) return `${next} tokens of ${pieces.length} came`;
  if (!done) return "the stream did not end with [DONE]";
  return said === text ? undefined : "the whole text is another one";
}
