/**
 * Which models a caller may use: a list of globs. `*` is any text and `?` any character; a glob
 * behind `!` excludes, and wins. Matching takes time in proportion to both lengths together with
 * each `*`, never exponential time, because tenants choose the globs.
 */

/** Most globs of a list, and most characters of a glob. */
export const MOST_GLOBS = 64;
export const LONGEST_GLOB = 128;

/** @returns what is wrong with the list; undefined if nothing is */
export function globsFault(globs: readonly string[]): string | undefined {
  if (globs.length > MOST_GLOBS) return `more than ${MOST_GLOBS} globs`;
  const wrong = globs.find((glob) => glob.length > LONGEST_GLOB || !/^!?[A-Za-z0-9._*?-]+$/.test(glob));
  return wrong === undefined ? undefined : `'${wrong.slice(0, LONGEST_GLOB)}' is no glob of a model's name`;
}

export function allows(globs: readonly string[], name: string): boolean {
  let isIncluded = false;
  for (const glob of globs) {
    if (glob.startsWith("!")) {
      if (matches(glob, 1, name)) return false;
    } else isIncluded ||= matches(glob, 0, name);
  }
  return isIncluded;
}

/**
 * Whether the globs allow all that other globs allow. Says no in doubt: a list that excludes models
 * covers only single names, and globs that exclude the same models.
 */
export function covers(globs: readonly string[], others: readonly string[]): boolean {
  const isExclusion = (glob: string): boolean => glob.startsWith("!");
  const exclusions = others.filter(isExclusion);
  return others
    .filter((other) => !isExclusion(other))
    .every((other) => {
      if (!/[*?]/.test(other)) return allows(globs, other);
      const excluded = globs.filter(isExclusion);
      const isCovered = globs.some((glob) => !isExclusion(glob) && matches(glob, 0, other));
      return isCovered && excluded.every((glob) => exclusions.some((one) => matches(one, 1, glob.slice(1))));
    });
}

/**
 * @param from where the pattern begins in `glob`
 * @param name of a model, or another glob: only a `*` covers the `*` of another glob
 */
function matches(glob: string, from: number, name: string): boolean {
  let [at, place] = [from, 0];
  /** The last `*`, and the first character of the name that it does not cover yet. */
  let [star, covered] = [-1, 0];
  while (place < name.length) {
    if (glob[at] === "*") {
      star = at++;
      covered = place;
    } else if (at < glob.length && ((glob[at] === "?" && name[place] !== "*") || glob[at] === name[place])) {
      at++;
      place++;
    } else if (star >= 0) {
      at = star + 1;
      place = ++covered;
    } else return false;
  }
  while (glob[at] === "*") at++;
  return at === glob.length;
}
