/**
 * README.md stays short enough to be read as a whole (the pages of docs/ have the details), a
 * folder to be looked through, a file to have one subject, and a function to be seen at once.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync, Visitor } from "oxc-parser";
import { codeLines, folderOf, isScript, isTest, lineAt } from "./files.mjs";

const README = "README.md";
const MOST_LINES = 180;
const MOST_FILES = 24;
/** Without blank lines and comments: the head of a Redis script may be long. */
const MOST_FILE_LINES = 400;
const MOST_FUNCTION_LINES = 100;

/**
 * @param {string} root
 * @param {string[]} files
 * @returns {string[]} a sentence for each fault
 */
export function checkLengths(root, files) {
  return [
    ...readmeFaults(root, files),
    ...folderFaults(files),
    ...fileFaults(root, files),
    ...files.filter(isScript).flatMap((path) => functionFaults(root, path)),
  ];
}

/**
 * @param {string} root
 * @param {string[]} files
 */
function readmeFaults(root, files) {
  if (!files.includes(README)) return [];
  const lines = readFileSync(join(root, README), "utf8").replace(/\n$/, "").split("\n").length;
  return lines > MOST_LINES ? [`${README}: ${lines} lines, at most ${MOST_LINES}`] : [];
}

/**
 * A Redis script and its wrapper count as one.
 *
 * @param {string[]} files
 */
function folderFaults(files) {
  /** @type {Map<string, Set<string>>} */
  const folders = new Map();
  for (const path of files) {
    if (isTest(path) || !(isScript(path) || path.endsWith(".lua"))) continue;
    const names = folders.get(folderOf(path)) ?? new Set();
    folders.set(folderOf(path), names.add(path.replace(/\.\w+$/, "")));
  }
  return [...folders]
    .filter(([, names]) => names.size > MOST_FILES)
    .map(([folder, names]) => `${folder}: ${names.size} files of source, at most ${MOST_FILES}`);
}

/**
 * @param {string} root
 * @param {string[]} files
 */
function fileFaults(root, files) {
  return files
    .filter((path) => isScript(path) || path.endsWith(".lua"))
    .map((path) => ({ path, lines: codeLines(root, path) }))
    .filter(({ lines }) => lines > MOST_FILE_LINES)
    .map(({ path, lines }) => `${path}: ${lines} lines of code, at most ${MOST_FILE_LINES}`);
}

/**
 * The functions of tests that only group other tests may be longer.
 *
 * @param {string} root
 * @param {string} path
 */
function functionFaults(root, path) {
  const text = readFileSync(join(root, path), "utf8");
  /** @type {string[]} */
  const faults = [];
  /** @type {Set<number>} where functions that group tests begin */
  const groups = new Set();
  const measure = (/** @type {{ start: number, end: number }} */ { start, end }) => {
    const first = lineAt(text, start);
    const lines = lineAt(text, end) - first + 1;
    if (lines <= MOST_FUNCTION_LINES || groups.has(start)) return;
    faults.push(`${path}:${first}: a function of ${lines} lines, at most ${MOST_FUNCTION_LINES}`);
  };
  new Visitor({
    CallExpression({ callee, arguments: given }) {
      if (!isTest(path) || !/^(?:describe|suite)\b/.test(text.slice(callee.start, callee.end))) return;
      for (const { start } of given) groups.add(start);
    },
    FunctionDeclaration: measure,
    FunctionExpression: measure,
    ArrowFunctionExpression: measure,
  }).visit(parseSync(path, text).program);
  return faults;
}
