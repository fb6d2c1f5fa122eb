/** One process at a time, by a file that names its holder: a holder that died, even by SIGKILL, holds nothing. */
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { identify, isAlive } from "./process-identity.mjs";

/** Takes the lock and returns undefined, or returns its living holder. It is given up when this process exits, however it does. */
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
        if (error.code !== "EEXIST") throw error;
      }
      const holder = read(path);
      if (holder !== undefined && isAlive(holder)) return holder;
      breakLock(path, holder, mine);
    }
  } finally {
    rmSync(mine, { force: true });
  }
}

export function dropLock(path) {
  if (read(path)?.pid === process.pid) rmSync(path, { force: true });
}

/** Another process may have broken the dead lock and taken it since we looked: then it gets its file back. */
function breakLock(path, dead, mine) {
  const aside = `${mine}.dead`;
  try {
    renameSync(path, aside);
    const moved = read(aside);
    if (moved !== undefined && moved.pid !== dead?.pid) linkSync(aside, path);
  } catch (error) {
    if (error.code !== "ENOENT" && error.code !== "EEXIST") throw error;
  } finally {
    rmSync(aside, { force: true });
  }
}

function read(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined; // gone, or not ours to understand: nobody holds it
  }
}
