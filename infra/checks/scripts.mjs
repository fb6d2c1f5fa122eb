/** Redis scripts name their keys and arguments, as shared/redis/script-names.ts says. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * @param {string} root
 * @param {string[]} files
 * @returns {string[]} a sentence for each fault
 */
export function checkScripts(root, files) {
  return files
    .filter((path) => path.endsWith(".lua"))
    .flatMap((path) =>
      readFileSync(join(root, path), "utf8")
        .split("\n")
        .flatMap((line, i) => {
          const [number] = /\b(?:KEYS|ARGV)\[/.exec(line) ?? [];
          return number === undefined ? [] : [`${path}:${i + 1}: has a number in ${number}…], and the head has names`];
        }),
    );
}
