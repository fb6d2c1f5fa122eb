/**
 * The lists of `shared/setting-names.ts` have exactly the environment variables that the sources
 * read, so that no process takes a setting for a misspelt name, or a misspelt name for a setting.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isScript, isTest } from "./files.mjs";

const LISTS = "shared/setting-names.ts";

/** A read of a variable: a field of a schema, or a look into an environment. */
const IN_SCRIPTS = /^\s+(BATON_[A-Z0-9_]+): z\b|\benv(?:\[|, )"(BATON_[A-Z0-9_]+)"/gm;
const IN_COMPOSE = /\$\{(BATON_[A-Z0-9_]+)/g;
/** A setting that users see. */
const IN_EXAMPLE = /^#?(BATON_[A-Z0-9_]+)=/gm;

/**
 * @param {string} root
 * @param {string[]} files
 * @returns {string[]} a sentence for each fault
 */
export function checkSettings(root, files) {
  if (!files.includes(LISTS)) return [];
  const listed = new Set(namesIn(join(root, LISTS), /"(BATON_[A-Z0-9_]+)"/g));
  const read = new Set();
  const faults = [];
  for (const path of files) {
    const pattern = patternFor(path);
    if (pattern === undefined) continue;
    for (const name of namesIn(join(root, path), pattern)) {
      read.add(name);
      if (!listed.has(name)) faults.push(`${path}: has the setting ${name}, which ${LISTS} lacks`);
    }
  }
  const unread = [...listed].filter((name) => !read.has(name));
  return [...faults, ...unread.map((name) => `${LISTS}: has ${name}, which nothing reads`)];
}

/** @param {string} path */
function patternFor(path) {
  if (path === "docker-compose.yml") return IN_COMPOSE;
  if (path === ".env.example") return IN_EXAMPLE;
  // The unit tests beside the sources set variables, and read none.
  return isScript(path) && (!isTest(path) || path.startsWith("test/")) ? IN_SCRIPTS : undefined;
}

/**
 * @param {string} file
 * @param {RegExp} pattern a group of which is a name
 */
function namesIn(file, pattern) {
  return [...readFileSync(file, "utf8").matchAll(pattern)].map(([, one, other]) => one ?? other ?? "");
}
