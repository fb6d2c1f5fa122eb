/**
 * A member's log file and its lines. The member writes to the file itself and this process reads
 * along. A pipe would be simpler, but if Ctrl-Z stopped the start, a full pipe would block the
 * whole fleet.
 */
import { fstatSync, ftruncateSync, openSync, readSync, renameSync, statSync } from "node:fs";
import { codeOf } from "../setup/terminal.mjs";

/** Logs of earlier starts to keep. */
const KEPT_LOGS = 3;
/** A log beyond this size starts again empty, because disks are for data. */
const MAX_BYTES = 32 * 1024 * 1024;
/** Characters to keep of a line without an end. */
const MAX_LINE_CHARS = 64_000;
const POLL_MS = 100;
/** Pino's number for this level. */
const WARN_LEVEL = 40;
/** Fields that are the same on every line, or that the reader knows. */
const ROUTINE_FIELDS = new Set(["time", "pid", "hostname", "name"]);

/**
 * The last start's log becomes `.1`, the log before it `.2`, and so on.
 *
 * @param {string} path
 */
export function rotate(path) {
  for (let age = KEPT_LOGS; age >= 1; age -= 1) {
    const from = age === 1 ? path : `${path}.${age - 1}`;
    try {
      if (statSync(from).size > 0) renameSync(from, `${path}.${age}`);
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error;
    }
  }
}

/**
 * Opens a log for a child's output, in append mode: after the file becomes empty, every writer
 * continues at the new end.
 *
 * @param {string} path
 */
export function openLog(path) {
  return openSync(path, "a", 0o600);
}

/**
 * Calls `onLine` for each whole new line, until this process ends.
 *
 * @param {string} path
 * @param {(line: string) => void} onLine
 * @returns {() => void} reads the lines so far, without waiting for the next poll
 */
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
      rest = (lines.pop() ?? "").slice(-MAX_LINE_CHARS);
      for (const line of lines) onLine(line);
    }
    if (at <= MAX_BYTES) return;
    ftruncateSync(file, 0);
    at = 0;
  };
  setInterval(read, POLL_MS).unref();
  return read;
}

/** @typedef {{ message: string, isWarning: boolean, details: Record<string, unknown> }} LogLine */

/**
 * Our own processes write JSON, the brokers text, and a crash any bytes.
 *
 * @param {string} text
 * @returns {LogLine}
 */
export function readLine(text) {
  if (text.startsWith("{")) {
    try {
      const { level, msg, ...details } = JSON.parse(text);
      return { message: msg, isWarning: level >= WARN_LEVEL, details };
    } catch {
      // The line looked like JSON but is not JSON, so the message is the whole line.
    }
  }
  return { message: text, isWarning: false, details: {} };
}

/**
 * A line in words for a person, at most 400 characters.
 *
 * @param {LogLine} line
 */
export function describe({ message, details }) {
  const { err } = details;
  const said = typeof err === "object" && err !== null && "message" in err ? [err.message] : [];
  const extra = Object.entries(details)
    .filter(([key, value]) => !ROUTINE_FIELDS.has(key) && /^(string|number|boolean)$/.test(typeof value))
    .map(([key, value]) => `${key}=${String(value)}`);
  return [message, ...said, ...extra].join("  ").slice(0, 400);
}

/**
 * The lines that describe a failure, at most three. Of a stack trace, the line above the stack.
 *
 * @param {readonly LogLine[]} lines
 */
export function telling(lines) {
  const errors = lines.filter(({ message, isWarning }) => isWarning || /^\S*Error\b/.test(message));
  return (errors.length > 0 ? errors : lines).filter(({ message }) => message).slice(-3);
}
