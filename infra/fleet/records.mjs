/**
 * One small file for each process that a start has running. It is how the start stops them in order, how the guard does when the start
 * was killed, and how the next start does when both were.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { identify, isAlive } from "../setup/process-identity.mjs";

/** `order`: lower is stopped first. `container`: the Docker container behind this process, if it is one. */
export function writeRecord(folder, { name, pid, order, graceMs, container }) {
  mkdirSync(folder, { recursive: true });
  const record = { name, pid, identity: identify(pid), order, graceMs, container, owner: process.pid };
  writeFileSync(file(folder, name), JSON.stringify(record));
}

export function removeRecord(folder, name) {
  rmSync(file(folder, name), { force: true });
}

/** The processes of all records, or of one owner's, that still live; what is left of the others is cleared away. */
export function livingRecords(folder, owner) {
  mkdirSync(folder, { recursive: true });
  const living = [];
  for (const name of readdirSync(folder)) {
    const record = read(join(folder, name));
    if (record !== undefined && owner !== undefined && record.owner !== owner) continue;
    if (record !== undefined && (isAlive(record) || record.container !== undefined)) living.push(record);
    else rmSync(join(folder, name), { force: true });
  }
  return living;
}

function file(folder, name) {
  return join(folder, `${name}.json`);
}

function read(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined; // cut off by a crash: the process, if there was one, cannot be told from others
  }
}
