/** Comments and Markdown stay within 100 columns, so that they read like a column of text. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isScript, lineAt, readScript } from "./files.mjs";

const MOST_COLUMNS = 100;

/** The mark of a comment on a separate line, by the end of the path, for files without a parser. */
const MARKERS = new Map([
  ["lua", "--"],
  ["py", "#"],
  ["sh", "#"],
  ["yml", "#"],
  ["yaml", "#"],
  ["conf", "#"],
  ["Dockerfile", "#"],
  [".env.example", "#"],
  [".npmrc", "#"],
  [".ci/run", "#"],
]);

/**
 * @param {string} root
 * @param {string[]} files
 * @returns {string[]} a sentence for each fault
 */
export function checkColumns(root, files) {
  return files.flatMap((path) => {
    if (isScript(path)) return scriptFaults(root, path);
    if (path.endsWith(".md")) return markdownFaults(root, path);
    const marker = markerOf(path);
    return marker === undefined ? [] : markedFaults(root, path, marker);
  });
}

/** @param {string} path */
export function markerOf(path) {
  return [...MARKERS].find(([end]) => path === end || path.endsWith(`.${end}`) || path.endsWith(`/${end}`))?.[1];
}

/**
 * @param {string} root
 * @param {string} path
 */
function scriptFaults(root, path) {
  const { text, comments } = readScript(root, path);
  const lines = text.split("\n");
  const numbers = new Set();
  for (const { start, end } of comments) {
    for (let number = lineAt(text, start); number <= lineAt(text, end); number += 1) numbers.add(number);
  }
  return [...numbers].flatMap((number) => tooWide(path, number, lines[number - 1] ?? ""));
}

/**
 * Leaves out rows of tables, because a cell sets their width.
 *
 * @param {string} root
 * @param {string} path
 */
function markdownFaults(root, path) {
  const lines = readFileSync(join(root, path), "utf8").split("\n");
  return lines.flatMap((line, i) => (line.trimStart().startsWith("|") ? [] : tooWide(path, i + 1, line)));
}

/**
 * @param {string} root
 * @param {string} path
 * @param {string} marker
 */
function markedFaults(root, path, marker) {
  const lines = readFileSync(join(root, path), "utf8").split("\n");
  return lines.flatMap((line, i) => (line.trimStart().startsWith(marker) ? tooWide(path, i + 1, line) : []));
}

/**
 * @param {string} path
 * @param {number} number
 * @param {string} line
 */
function tooWide(path, number, line) {
  const columns = Array.from(line).length;
  return columns > MOST_COLUMNS ? [`${path}:${number}: ${columns} columns, at most ${MOST_COLUMNS} are read well`] : [];
}
