/**
 * Where things lie. All that `npm start` and `npm test` write, apart from node_modules/ and dist/,
 * is in one folder that git ignores, so deleting that folder is a clean slate.
 */
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { codeOf, Refusal } from "./terminal.mjs";

export const root = join(import.meta.dirname, "../..");

/**
 * The folder for data, logs and process records: `.baton`, or what BATON_HOME names.
 *
 * @param {NodeJS.ProcessEnv} env
 */
export function homeFolder(env) {
  return env["BATON_HOME"] ? resolve(root, env["BATON_HOME"]) : join(root, ".baton");
}

/**
 * Makes the folder, and proves by writing a file that it can be written to: permissions alone say
 * little about a root user, a read-only mount or a full disk.
 *
 * @param {string} folder
 * @param {string} hint what to do otherwise
 * @throws {Refusal} if it cannot be written to
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
 * Makes one folder after the other. Node's own `recursive` option never returns where a folder
 * exists and cannot have children, as in /proc (seen with Node 20.20).
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
