/**
 * Redis scripts name their keys and arguments, as shared/redis/script-names.ts says, and the fields
 * of records, as shared/records/lua.ts says. TypeScript reads a record by its declaration, too.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isScript, isTest } from "./files.mjs";

const NUMBER = /\b(?:KEYS|ARGV)\[/;
/** A bar in a text of a script: no text of a script has another use for a bar. */
const LUA_BAR = /'[^']*\|[^']*'/;
/** A text that is cut at bars, or two values with a bar between. */
const SCRIPT_BAR = /\.split\(["'`]\|["'`]|\}\|\$\{|[+] ["'`]\|["'`] [+]/;
const DECLARED = "shared/records/";
/** The folders whose processes share records. */
const PROCESSES = /^(?:gateway|worker|shared)\//;

/**
 * @param {string} root
 * @param {string[]} files
 * @returns {string[]} a sentence for each fault
 */
export function checkScripts(root, files) {
  return files.flatMap((path) => {
    if (path.endsWith(".lua")) return [...numbersIn(root, path), ...barsIn(root, path, LUA_BAR)];
    const mayHaveRecords = PROCESSES.test(path) && isScript(path) && !isTest(path) && !path.startsWith(DECLARED);
    return mayHaveRecords ? barsIn(root, path, SCRIPT_BAR) : [];
  });
}

/**
 * @param {string} root
 * @param {string} path
 */
function numbersIn(root, path) {
  return linesOf(root, path).flatMap((line, i) => {
    const [number] = NUMBER.exec(line) ?? [];
    return number === undefined ? [] : [`${path}:${i + 1}: has a number in ${number}…], and the head has names`];
  });
}

/**
 * @param {string} root
 * @param {string} path
 * @param {RegExp} bar
 */
function barsIn(root, path, bar) {
  return linesOf(root, path).flatMap((line, i) => {
    if (/^\s*(?:--|\*|\/\/|\/\*)/.test(line) || !bar.test(line)) return [];
    return [`${path}:${i + 1}: counts the bars of a text, and shared/records names the fields`];
  });
}

/**
 * @param {string} root
 * @param {string} path
 */
function linesOf(root, path) {
  return readFileSync(join(root, path), "utf8").split("\n");
}
