/** Everything that start and test write lies under one git-ignored folder, so that deleting it is a clean slate. */
import { accessSync, constants, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
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
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(probe, "x");
    rmSync(probe);
  } catch (error) {
    throw new Refusal(`Baton cannot write to ${folder} (${error.code}): ${hint}`);
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
