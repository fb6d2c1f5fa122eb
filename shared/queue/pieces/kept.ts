/** The share of kept results (kept.lua) that each part of the counts may hold. */

/**
 * @param bytes the limit of all results; undefined for no limit
 * @param parts the number of parts of the counts
 * @returns the limit of one part, as the scripts read it
 */
export function keptShare(bytes: number | undefined, parts: number): number {
  return bytes === undefined ? -1 : Math.ceil(bytes / parts);
}
