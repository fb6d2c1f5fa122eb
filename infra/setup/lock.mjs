/**
 * Lets a single process at a time do something, by a file that names the holder. A holder that has
 * died, even by SIGKILL, holds nothing.
 */
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { identify, isAlive } from "./process-identity.mjs";
import { codeOf } from "./terminal.mjs";

/** @typedef {{ pid: number, identity?: string }} Holder */

/**
 * Takes the lock until this process ends in any way, or until `dropLock`.
 *
 * @param {string} path
 * @returns {Holder | undefined} undefined if this call took the lock, else the living holder
 */
export function takeLock(path) {
  mkdirSync(dirname(path), { recursive: true });
  const mine = `${path}.${process.pid}`;
  writeFileSync(mine, JSON.stringify({ pid: process.pid, identity: identify(process.pid) }));
  try {
    for (;;) {
      try {
        linkSync(mine, path); // atomic, and the file is complete from its first instant
        process.once("exit", () => dropLock(path));
        return undefined;
      } catch (error) {
        if (codeOf(error) !== "EEXIST") throw error;
      }
      const holder = read(path);
      if (holder !== undefined && isAlive(holder)) return holder;
      breakLock(path, holder, mine);
    }
  } finally {
    rmSync(mine, { force: true });
  }
}

/** @param {string} path */
export function dropLock(path) {
  if (read(path)?.pid === process.pid) rmSync(path, { force: true });
}

/**
 * Removes a dead holder's lock. Another process may have broken and taken the lock after this
 * process read the holder; then that process gets its file back.
 *
 * @param {string} path
 * @param {Holder | undefined} dead
 * @param {string} mine
 */
function breakLock(path, dead, mine) {
  const aside = `${mine}.dead`;
  try {
    renameSync(path, aside);
    const moved = read(aside);
    if (moved !== undefined && moved.pid !== dead?.pid) linkSync(aside, path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT" && codeOf(error) !== "EEXIST") throw error;
  } finally {
    rmSync(aside, { force: true });
  }
}

/**
 * @param {string} path
 * @returns {Holder | undefined}
 */
function read(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined; // the file is gone or is no lock of ours: no process holds the lock
  }
}
