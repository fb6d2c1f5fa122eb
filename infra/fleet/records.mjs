/**
 * Records of running processes. A start holds the records of its own processes in memory, and sends
 * the list to its guard (guard.mjs). Each record is also a small file. If both start and guard are
 * killed, the next start finds the remaining processes by these files.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { identify, isAlive } from "../setup/process-identity.mjs";
import { codeOf } from "../setup/terminal.mjs";

/**
 * @typedef {object} RunningRecord
 * @property {string} name
 * @property {number} pid
 * @property {string} [identity] the identity of the process with this number
 * @property {number} order lower orders stop first
 * @property {number} graceMs
 * @property {string} [container] the Docker container behind the process, if it has one
 */

/** The processes of one start. A user may remove the folder of the files meanwhile. */
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
    // A failed write of the file ends the start, which then has to know the process.
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
 * The records whose process still lives. A container may live without its process.
 *
 * @param {readonly RunningRecord[]} records
 */
export function living(records) {
  return records.filter((record) => isAlive(record) || record.container !== undefined);
}

/**
 * The records in the files of earlier starts. Removes the files of processes that are gone.
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
 * Removes the record's file. After a removal of the folder, another start may have made a file of
 * the same name.
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
    return undefined; // a crash has cut the file off, so its process is unknown
  }
}
