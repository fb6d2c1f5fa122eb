/** Checks that the paths which documents and comments name exist. */
import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { folderOf, isScript, isTest } from "./files.mjs";

/** A path of this repository in prose: in backquotes, from the root. */
const PATH = /`((?:cli|gateway|worker|shared|infra|test)\/[\w./-]*)`/g;
/** A file of the folder in its README: in backquotes, with its ending. */
const FILE = /`([\w.-]+\.(?:ts|mjs|lua))`/g;
/** A link of Markdown that stays in the repository. */
const LINK = /\]\((?![a-z]+:|#)([^)#\s]+)/g;

/**
 * @param {string} root
 * @param {string[]} files
 * @returns {string[]} a sentence for each fault
 */
export function checkReferences(root, files) {
  const known = new Set(files);
  for (const file of files) {
    for (let folder = folderOf(file); folder !== "."; folder = folderOf(folder)) known.add(folder);
  }
  const isThere = (/** @type {string} */ path) => known.has(path.replace(/\/$/, ""));
  return files.flatMap((path) => {
    const isRead = path.endsWith(".md") || path.endsWith(".lua") || (isScript(path) && !isTest(path));
    if (!isRead) return []; // the texts of tests are samples
    const text = readFileSync(join(root, path), "utf8");
    const paths = [...text.matchAll(PATH)].map(([, name = ""]) => name);
    const links = path.endsWith(".md") ? [...text.matchAll(LINK)].map(([, name = ""]) => name) : [];
    const own = path.endsWith("/README.md") ? [...text.matchAll(FILE)].map(([, name = ""]) => name) : [];
    const lies = (/** @type {string} */ name) =>
      files.some((file) => file.startsWith(`${folderOf(path)}/`) && file.endsWith(`/${name}`));
    return [
      ...own.filter((name) => !lies(name)),
      ...paths.filter((name) => !isThere(name)),
      ...links.filter((name) => !isThere(posix.join(folderOf(path), name))),
    ].map((name) => `${path}: names ${name}, which is not there`);
  });
}
