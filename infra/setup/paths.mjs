/**
 * The folders of the checkout. `npm start` and `npm test` write only to node_modules/, dist/ and a
 * folder that git ignores, so deleting that folder is a clean slate.
 */
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { codeOf, Refusal } from "./terminal.mjs";

export const root = join(import.meta.dirname, "../..");

/**
 * The folder for data, logs and process records: `.baton`, or the folder in BATON_HOME.
 *
 * @param {NodeJS.ProcessEnv} env
 */
export function homeFolder(env) {
  return env["BATON_HOME"] ? resolve(root, env["BATON_HOME"]) : join(root, ".baton");
}

/**
 * Makes the folder, and writes a file as a test: permissions alone say little about a root user, a
 * read-only mount or a full disk.
 *
 * @param {string} folder
 * @param {string} hint the remedy, for the message
 * @throws {Refusal} if the write fails
 */
export function needWritable(folder, hint = "make it writable, or set BATON_HOME to a folder that is.") {
  const probe = join(folder, `.probe-${process.pid}`);
  try {
    makeFolder(folder);
    writeFileSync(probe, "x");
    rmSync(probe);
  } catch (error) {
    throw new Refusal(`Baton cannot write to ${folder} (${codeOf(error)}): ${hint}`);
  }
}

/**
 * Makes folder after folder. Node's own `recursive` option never returns if a folder exists and
 * cannot have children, as in /proc (seen with Node 20.20).
 *
 * @param {string} folder
 */
function makeFolder(folder) {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error; // another process was quicker
  }
}
