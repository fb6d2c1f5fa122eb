/** How much of the results that are kept (kept.lua) may lie together. */

/**
 * @param bytes what all results may take; undefined where they have no limit
 * @param parts in how many parts they are counted
 * @returns what those of one part may take, as the scripts read it
 */
export function keptShare(bytes: number | undefined, parts: number): number {
  return bytes === undefined ? -1 : Math.ceil(bytes / parts);
}
