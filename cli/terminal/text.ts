/** Text as a terminal shows it: tables in columns, and nothing that would steer the terminal. */

/** Control characters but for tabs and line ends. */
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

/** Names and values, one pair on each line. */
export function pairs(values: Readonly<Record<string, string>>): string[] {
  const width = Math.max(0, ...Object.keys(values).map((name) => name.length));
  return Object.entries(values).map(([name, value]) => `${name.padEnd(width)}  ${value}`);
}

/**
 * Replaces control characters but for tabs and line ends. A model or another client may have made
 * the text, and an escape sequence in it could rewrite what the terminal shows.
 */
export function harmless(text: string): string {
  return text.replaceAll(steering, "\ufffd");
}

/**
 * Escapes the same characters in a JSON document, which means the same then: JSON has them in
 * strings only, and there it lets those past U+001F stand as they are.
 */
export function harmlessJson(json: string): string {
  return json.replaceAll(steering, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * Makes text harmless that has to stay on its line, as in a table, and in its column: what turns
 * the direction of writing is replaced as well.
 */
export function onOneLine(text: string): string {
  return harmless(text.replaceAll(/[\r\n\t]+/g, " ")).replaceAll(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}
