/** Text for a terminal: tables in columns, without characters that control the terminal. */

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
