/**
 * Installs the packages of package-lock.json if node_modules lacks any. npm's own record of
 * installed packages decides, so an `npm ci` or `npm install` by hand counts, and an interrupted
 * install does not.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { lastLines, npm } from "./command.mjs";
import { root } from "./paths.mjs";
import { Refusal, step } from "./terminal.mjs";

/**
 * The part of npm's record of a package that this file reads.
 *
 * @typedef {object} LockedPackage
 * @property {string} version
 * @property {boolean} [link]
 * @property {boolean} [optional]
 * @property {string[]} [os] the systems of the package; absent: all
 * @property {string[]} [cpu]
 * @property {string[]} [libc]
 */

/**
 * @param {string} logFolder
 * @throws {Refusal} if `npm ci` fails
 */
export async function installDependencies(logFolder) {
  if (areInstalled()) return;
  const log = join(logFolder, "npm.log");
  // The arguments name the compiler's group, because a NODE_ENV of production would leave the group
  // out.
  const args = ["ci", "--include=dev", "--no-audit", "--no-fund"];
  const { code, output } = await step("Installing dependencies (npm ci)", () => npm(args, log));
  if (code !== 0)
    throw new Refusal(
      `\`npm ci\` failed, so nothing can be started (all of its output: ${log}). Its last words:\n${lastLines(output)}`,
    );
}

function areInstalled() {
  const lockFile = join(root, "package-lock.json");
  const wanted = readPackages(lockFile);
  if (wanted === undefined)
    throw new Refusal(`${lockFile} is missing or damaged: restore it (git checkout package-lock.json).`);
  const installed = readPackages(join(root, "node_modules/.package-lock.json"));
  if (installed === undefined) return false;
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === "" || entry.link) return true;
    const have = installed[path];
    if (have === undefined && mayBeAbsent(entry)) return true;
    return have?.version === entry.version && existsSync(join(root, path, "package.json"));
  });
}

/**
 * npm leaves out optional packages for other machines. npm chooses among packages for several
 * libcs, and an optional package for all systems may have failed to install.
 *
 * @param {LockedPackage} entry
 */
function mayBeAbsent({ optional, os, cpu, libc }) {
  const fits = (/** @type {string[] | undefined} */ list, /** @type {string} */ value) =>
    list === undefined || list.includes(value);
  const isForHere = fits(os, process.platform) && fits(cpu, process.arch) && libc === undefined;
  return optional === true && (!isForHere || os === undefined);
}

/**
 * @param {string} file
 * @returns {Record<string, LockedPackage> | undefined} by path, "" for the project itself
 */
function readPackages(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8")).packages;
  } catch {
    return undefined; // absent or cut off, so the file proves nothing
  }
}
