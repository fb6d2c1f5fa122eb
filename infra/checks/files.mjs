/**
 * Lists the files for the checks and reads their comments and imports, without running any file.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix, relative, sep } from "node:path";
import { parseSync } from "oxc-parser";

/** Folders of other projects, or folders that a command makes. */
const SKIPPED = new Set(["node_modules", "dist", ".git", ".baton"]);

/**
 * Every file under `root`, as a path from there with forward slashes, in the order of the alphabet.
 *
 * @param {string} root
 * @returns {string[]}
 */
export function listFiles(root) {
  /** @type {string[]} */
  const found = [];
  const visit = (/** @type {string} */ folder) => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (SKIPPED.has(entry.name)) continue;
      const path = join(folder, entry.name);
      if (entry.isDirectory()) visit(path);
      else if (entry.isFile()) found.push(relative(root, path).split(sep).join("/"));
    }
  };
  visit(root);
  return found.toSorted();
}

/** @param {string} path */
export const isScript = (path) => /\.(tsx?|mjs)$/.test(path);

/** @param {string} path */
export const isTest = (path) => path.endsWith(".test.ts");

/**
 * The text of a script, its comments and the targets of its imports, type imports included.
 *
 * @param {string} root
 * @param {string} path
 */
export function readScript(root, path) {
  const text = readFileSync(join(root, path), "utf8");
  const { module, comments, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const requests = [
    ...module.staticImports.map(({ moduleRequest }) => moduleRequest.value),
    ...module.staticExports.flatMap(({ entries }) => entries.map(({ moduleRequest }) => moduleRequest?.value)),
    ...module.dynamicImports.map(({ moduleRequest }) => text.slice(moduleRequest.start + 1, moduleRequest.end - 1)),
  ];
  const imports = requests.map((request) => target(path, request)).filter((found) => found !== undefined);
  return { text, comments, imports: [...new Set(imports)] };
}

/**
 * The path of an imported file, or undefined for a package.
 *
 * @param {string} importer
 * @param {string | undefined} request
 */
export function target(importer, request) {
  if (request === undefined) return undefined;
  const path = request.startsWith("#shared/")
    ? request.slice(1)
    : request.startsWith(".")
      ? posix.join(posix.dirname(importer), request)
      : undefined;
  return path?.replace(/\.js$/, ".ts");
}

/** @param {string} path */
export const folderOf = (path) => dirname(path);

/**
 * The number of the line that holds a position of `text`, from 1.
 *
 * @param {string} text
 * @param {number} position
 */
export function lineAt(text, position) {
  return text.slice(0, position).split("\n").length;
}

/**
 * How many lines of a script or a Redis script are neither blank nor a comment.
 *
 * @param {string} root
 * @param {string} path
 * @returns {number}
 */
export function codeLines(root, path) {
  if (path.endsWith(".lua")) {
    const lines = readFileSync(join(root, path), "utf8").split("\n");
    return lines.filter((line) => !/^\s*(?:--|#!|$)/.test(line)).length;
  }
  const { text, comments } = readScript(root, path);
  let [code, at] = ["", 0];
  for (const { start, end } of comments) {
    code += text.slice(at, start);
    at = end;
  }
  return (code + text.slice(at)).split("\n").filter((line) => line.trim() !== "").length;
}
