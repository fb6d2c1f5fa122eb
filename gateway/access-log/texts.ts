/** Texts of clients as JSON in ASCII, so that no character of theirs ends a line. */
import { withoutSecrets } from "../auth/audit.js";

/** Characters that JSON in ASCII leaves as they are. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** @returns the text in quotes, or null if it is undefined */
export function quoted(text: string | undefined): string {
  if (text === undefined) return "null";
  if (PLAIN.test(text)) return `"${text}"`;
  return JSON.stringify(text).replaceAll(/[\u007f-\uffff]/g, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Most texts to keep, and in characters the longest of these. */
const MOST_KEPT = 1_024;
const LONGEST_KEPT = 512;

/**
 * Quotes texts that clients have chosen freely, and that may be keys by mistake. Keeps what it has
 * made, because most requests repeat their paths and agents.
 */
export class FreeTexts {
  readonly #most: number;
  readonly #kept = new Map<string, string>();

  /** @param most characters of a text, at most 256; the rest is cut */
  constructor(most: number) {
    this.#most = most;
  }

  quoted(text: string | undefined): string {
    if (text === undefined) return "null";
    const kept = this.#kept.get(text);
    if (kept !== undefined) return kept;
    const made = quoted(withoutSecrets(text).slice(0, this.#most));
    if (text.length > LONGEST_KEPT) return made;
    if (this.#kept.size >= MOST_KEPT) this.#kept.clear();
    this.#kept.set(text, made);
    return made;
  }
}
