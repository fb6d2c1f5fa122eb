/** Everything that start and test write lies under one git-ignored folder, so that deleting it is a clean slate. */
import { accessSync, constants, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { Refusal } from "./refusal.mjs";

export const root = join(import.meta.dirname, "../..");

/** Where data, logs and process records are kept: `.baton`, or BATON_HOME. */
export function homeFolder(env) {
  return env.BATON_HOME ? resolve(root, env.BATON_HOME) : join(root, ".baton");
}

/** Makes the folder, and proves by writing that it takes files: permissions alone say little (root, read-only mounts, full disks). */
export function needWritable(folder, hint) {
  const probe = join(folder, `.probe-${process.pid}`);
  try {
    makeFolder(folder);
    writeFileSync(probe, "x");
    rmSync(probe);
  } catch (error) {
    throw new Refusal(`Baton cannot write to ${folder} (${error.code}): ${hint}`);
  }
}

/** Folder by folder: Node's own `recursive` never returns where a folder is there and cannot have children, as in /proc. */
function makeFolder(folder) {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (error.code !== "EEXIST") throw error; // another process was quicker
  }
}

export function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // absent and not executable are the same answer here
  }
}
