/** Text as a terminal shows it: tables in columns, and nothing that would steer the terminal. */

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
  // oxlint-disable-next-line no-control-regex -- these are what must not reach a terminal
  return text.replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "\ufffd");
}

/** The same where the text has to stay on its line, as in a table. */
export function onOneLine(text: string): string {
  return harmless(text.replaceAll(/[\r\n\t]+/g, " "));
}
