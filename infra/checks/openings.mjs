/** Every folder has a README, every file a first sentence, and every Lua script its wrapper. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { folderOf, isScript, isTest } from "./files.mjs";

const isProgram = (/** @type {string} */ path) => isScript(path) || path.endsWith(".lua");

/**
 * @param {string} root
 * @param {string[]} files
 * @returns {string[]} a sentence for each fault
 */
export function checkOpenings(root, files) {
  const known = new Set(files);
  const programs = files.filter((path) => isProgram(path) && folderOf(path) !== ".");
  const folders = [...new Set(programs.map(folderOf))];
  return [
    ...folders
      .filter((folder) => !known.has(`${folder}/README.md`))
      .map((folder) => `${folder}: has no README.md that says what it is for`),
    ...programs
      .filter((path) => !isTest(path) && !opensWithComment(root, path))
      .map((path) => `${path}: does not open with a comment that says what it holds`),
    ...files
      .filter((path) => path.endsWith(".lua") && !known.has(path.replace(/\.lua$/, ".ts")))
      .map((path) => `${path}: has no wrapper of the same name beside it`),
  ];
}

/**
 * @param {string} root
 * @param {string} path
 */
function opensWithComment(root, path) {
  const text = readFileSync(join(root, path), "utf8").replace(/^#!.*\n/, "");
  return /^\s*(\/\*\*|\/\/|--)\s*\S|^\s*\/\*\*\s*\n\s*\* \S/.test(text);
}
