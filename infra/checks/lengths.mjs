/** README.md stays short enough to be read as a whole: the pages of docs/ have the details. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

const README = "README.md";
const MOST_LINES = 180;

/**
 * @param {string} root
 * @param {string[]} files
 * @returns {string[]} a sentence for each fault
 */
export function checkLengths(root, files) {
  if (!files.includes(README)) return [];
  const lines = readFileSync(join(root, README), "utf8").replace(/\n$/, "").split("\n").length;
  return lines > MOST_LINES ? [`${README}: ${lines} lines, at most ${MOST_LINES}`] : [];
}
