/**
 * A child writes to its log file itself and this process reads along. A pipe would be simpler, but then a start that is stopped with
 * Ctrl-Z would block the whole fleet as soon as the pipe was full.
 */
import { closeSync, fstatSync, ftruncateSync, openSync, readSync, renameSync, statSync } from "node:fs";

const KEPT = 3;
/** Past this a log is cut off: it is for a person to read, and disks are for data. */
const MOST_BYTES = 32 * 1024 * 1024;
const POLL_MS = 100;

/** The last start's log becomes `.1`, and so on. */
export function rotate(path) {
  for (let age = KEPT; age >= 1; age -= 1) {
    const from = age === 1 ? path : `${path}.${age - 1}`;
    try {
      if (statSync(from).size > 0) renameSync(from, `${path}.${age}`);
    } catch (error) {
      if (error.code !== "ENOENT") throw error;
    }
  }
}

/** Opens for appending, as a child's stdout must be: then cutting the file moves every writer to its new end. */
export function openLog(path) {
  return openSync(path, "a", 0o600);
}

/** Calls `onLine` for each whole line that is written from now on. `stop()` reads what is left first. */
export function followLog(path, onLine) {
  const file = openSync(path, "r+");
  const buffer = Buffer.alloc(64 * 1024);
  let at = fstatSync(file).size;
  let rest = "";
  const read = () => {
    for (;;) {
      const count = readSync(file, buffer, 0, buffer.length, at);
      if (count === 0) break;
      at += count;
      const lines = (rest + buffer.toString("utf8", 0, count)).split("\n");
      rest = lines.pop().slice(-64_000);
      for (const line of lines) onLine(line);
    }
    if (at <= MOST_BYTES) return;
    ftruncateSync(file, 0);
    at = 0;
  };
  const timer = setInterval(read, POLL_MS);
  timer.unref();
  return {
    read,
    stop() {
      clearInterval(timer);
      read();
      closeSync(file);
    },
  };
}
