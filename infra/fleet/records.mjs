/**
 * Records of running processes. A start holds those of its own processes in memory, and hands them
 * to its guard (guard.mjs). Each record is also a small file, for the next start: it finds there
 * what a start and a guard that were both killed have left running.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { identify, isAlive } from "../setup/process-identity.mjs";
import { codeOf } from "../setup/terminal.mjs";

/**
 * @typedef {object} RunningRecord
 * @property {string} name
 * @property {number} pid
 * @property {string} [identity] which process the number means
 * @property {number} order lower is stopped first
 * @property {number} graceMs
 * @property {string} [container] the Docker container behind the process, if it has one
 */

/** The processes of one start. The folder of the files may be removed meanwhile. */
export class Records {
  /** @type {Map<string, RunningRecord>} by name */
  #held = new Map();
  /** @type {(held: RunningRecord[]) => void} */
  #onChange = () => {};

  /** @param {string} folder of the files */
  constructor(folder) {
    this.folder = folder;
  }

  get held() {
    return [...this.#held.values()];
  }

  /**
   * @param {(held: RunningRecord[]) => void} listener hears of each change, in place of an earlier
   *   listener
   */
  onChange(listener) {
    this.#onChange = listener;
  }

  /**
   * @param {import("./processes.mjs").Plan} plan
   * @param {number} pid
   */
  add({ name, order, graceMs, container }, pid) {
    /** @type {RunningRecord} */
    const record = { name, pid, order, graceMs };
    const identity = identify(pid);
    if (identity !== undefined) record.identity = identity;
    if (container !== undefined) record.container = container;
    // A file that cannot be written ends the start, which then has to know the process.
    this.#held.set(name, record);
    this.#onChange(this.held);
    mkdirSync(this.folder, { recursive: true });
    writeFileSync(recordFile(this.folder, name), JSON.stringify(record));
  }

  /** @param {string} name */
  remove(name) {
    const record = this.#held.get(name);
    if (record === undefined) return;
    this.#held.delete(name);
    this.#onChange(this.held);
    removeFile(this.folder, record);
  }
}

/**
 * Those whose process still lives. A container may live without its process.
 *
 * @param {readonly RunningRecord[]} records
 */
export function living(records) {
  return records.filter((record) => isAlive(record) || record.container !== undefined);
}

/**
 * The records that earlier starts have left as files; the files of processes that are gone are
 * removed.
 *
 * @param {string} folder
 */
export function leftRecords(folder) {
  /** @type {RunningRecord[]} */
  const left = [];
  for (const name of fileNames(folder)) {
    const record = read(join(folder, name));
    if (record !== undefined && living([record]).length > 0) left.push(record);
    else rmSync(join(folder, name), { force: true });
  }
  return left;
}

/**
 * If the folder was removed, another start may have made it again, with a file of the same name.
 *
 * @param {string} folder
 * @param {RunningRecord} record
 */
export function removeFile(folder, { name, pid }) {
  const file = recordFile(folder, name);
  if (read(file)?.pid === pid) rmSync(file, { force: true });
}

/** @param {string} folder */
function fileNames(folder) {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return []; // no start has run here yet
    throw error;
  }
}

/**
 * @param {string} folder
 * @param {string} name
 */
function recordFile(folder, name) {
  return join(folder, `${name}.json`);
}

/**
 * @param {string} path
 * @returns {RunningRecord | undefined}
 */
function read(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined; // cut off by a crash: it cannot be known which process it was for
  }
}
