/** Checks that the paths and headings which documents and comments name exist. */
import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { folderOf, isScript, isTest } from "./files.mjs";

/** A path of this repository in prose: in backquotes, from the root. */
const PATH = /`((?:cli|console|docs|gateway|worker|shared|infra|test)\/[\w./-]*)`/g;
/** A file of the folder in its README: in backquotes, with its ending. */
const FILE = /`([\w.-]+\.(?:tsx?|mjs|lua))`/g;
/** A link of Markdown that stays in the repository: a path, a heading, or both. */
const LINK = /\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?/g;

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
    const own = path.endsWith("/README.md") ? [...text.matchAll(FILE)].map(([, name = ""]) => name) : [];
    const lies = (/** @type {string} */ name) =>
      files.some((file) => file.startsWith(`${folderOf(path)}/`) && file.endsWith(`/${name}`));
    return [
      ...own.filter((name) => !lies(name)),
      ...paths.filter((name) => !isThere(name)),
      ...(path.endsWith(".md") ? brokenLinks(root, path, text, isThere) : []),
    ].map((name) => `${path}: names ${name}, which is not there`);
  });
}

/**
 * @param {string} root
 * @param {string} path of a page
 * @param {string} text of the page
 * @param {(path: string) => boolean} isThere
 * @returns {string[]} the targets of links without a file or a heading
 */
function brokenLinks(root, path, text, isThere) {
  return [...text.matchAll(LINK)].flatMap(([, name = "", anchor]) => {
    const target = name === "" ? path : posix.join(folderOf(path), name);
    if (!isThere(target)) return [name];
    if (anchor === undefined) return [];
    const has = target.endsWith(".md") && anchorsOf(readFileSync(join(root, target), "utf8")).has(anchor);
    return has ? [] : [`${name}#${anchor}`];
  });
}

/**
 * The anchors of a page's headings, as GitHub makes them: a repeated heading gets a number.
 *
 * @param {string} text
 */
function anchorsOf(text) {
  /** @type {Map<string, number>} */
  const times = new Map();
  const prose = text.replaceAll(/^( *)(```+|~~~+)[^\n]*\n[^]*?\n *\2/gm, "");
  const anchors = [...prose.matchAll(/^#{1,6} +(.+?) *$/gm)].map(([, heading = ""]) => {
    const shown = heading.replaceAll(/\]\([^)]*\)/g, "");
    const slug = shown
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-");
    const before = times.get(slug) ?? 0;
    times.set(slug, before + 1);
    return before === 0 ? slug : `${slug}-${before}`;
  });
  return new Set(anchors);
}
