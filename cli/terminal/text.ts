/** Text for a terminal: tables in columns, without characters that control the terminal. */
import { printJson } from "#shared/json/print.js";

/** Control characters except tabs and line ends. */
// oxlint-disable-next-line no-control-regex -- these are what must not reach a terminal
const steering = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/**
 * Aligns rows in columns, under a head.
 * @returns lines without trailing spaces
 */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

/** A member of an answer as text. */
export function shown(value: unknown): string {
  if (value === undefined || value === null) return "-";
  if (Array.isArray(value)) return value.length === 0 ? "-" : value.map(shown).join(" ");
  return onOneLine(typeof value === "string" ? value : printJson(value));
}

/** The named members of an answer, as cells of a table. */
export function cells<Answer>(answer: Answer, names: readonly (keyof Answer)[]): string[] {
  return names.map((name) => shown(answer[name]));
}

/** All members of an answer that have a value, as texts. */
export function memberTexts<Answer extends object>(
  answer: Answer,
  leftOut: readonly (keyof Answer)[],
): Record<string, string> {
  const members = Object.entries(answer).filter(
    ([name, value]) => value !== null && !leftOut.some((one) => one === name),
  );
  return Object.fromEntries(members.map(([name, value]) => [name, shown(value)]));
}

/** Names and values, a pair on each line. */
export function pairs(values: Readonly<Record<string, string>>): string[] {
  const width = Math.max(0, ...Object.keys(values).map((name) => name.length));
  return Object.entries(values).map(([name, value]) => `${name.padEnd(width)}  ${value}`);
}

/**
 * Replaces control characters except tabs and line ends. The text may come from a model or another
 * client, and an escape sequence in the text could change the screen.
 */
export function harmless(text: string): string {
  return text.replaceAll(steering, "\ufffd");
}

/**
 * Escapes the same characters in a JSON document, without a change of meaning. A valid document has
 * them only in strings, and there JSON allows raw characters above U+001F.
 */
export function harmlessJson(json: string): string {
  return json.replaceAll(steering, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * Makes text safe for a single line and a column, as in a table. Also replaces characters that
 * change the direction of writing.
 */
export function onOneLine(text: string): string {
  return harmless(text.replaceAll(/[\r\n\t]+/g, " ")).replaceAll(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}
