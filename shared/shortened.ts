/** Shortens texts that quote a client's values, for example a name of many megabytes. */

/**
 * @param most characters of the text
 * @param rest stands for the rest of a text that is cut
 * @returns a well-formed text: a cut may split a character, and no encoder takes half a character
 */
export function shortened(text: string, most: number, rest = "..."): string {
  const short = text.length > most ? text.slice(0, most).replace(/[\uD800-\uDBFF]$/, "") + rest : text;
  return Buffer.from(short).toString();
}
