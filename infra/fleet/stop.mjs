/**
 * Records of running processes, and stopping them. There is one small file for each process that a
 * start has running. By these files the start stops them in order; the guard does so when the start
 * was killed, and the next start when the guard was killed as well.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
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
 * @property {number} owner the process number of the start
 */

/**
 * @param {string} folder
 * @param {import("./processes.mjs").Plan} plan
 * @param {number} pid
 */
export function writeRecord(folder, { name, order, graceMs, container }, pid) {
  mkdirSync(folder, { recursive: true });
  const record = { name, pid, identity: identify(pid), order, graceMs, container, owner: process.pid };
  writeFileSync(recordFile(folder, name), JSON.stringify(record));
}

/**
 * @param {string} folder
 * @param {string} name
 */
export function removeRecord(folder, name) {
  rmSync(recordFile(folder, name), { force: true });
}

/**
 * The processes that still live; records of others are removed.
 *
 * @param {string} folder
 * @param {number} [owner] only the records of this start
 */
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

/**
 * Stops processes one order after the other. Each gets SIGTERM and its grace; after that it is
 * killed, with everything in its process group.
 *
 * @param {string} folder
 * @param {readonly RunningRecord[]} records
 * @param {{ onKilled?: (record: RunningRecord) => void }} [options] `onKilled` is called before a
 *   process that outstayed its grace is killed
 */
export async function stopInOrder(folder, records, { onKilled = () => {} } = {}) {
  const orders = [...new Set(records.map((record) => record.order))].sort((a, b) => a - b);
  for (const order of orders) {
    const together = records.filter((record) => record.order === order);
    await Promise.all(together.map((record) => stopOne(folder, record, onKilled)));
  }
}

/**
 * Kills without grace and without waiting: for a second Ctrl-C.
 *
 * @param {string} folder
 * @param {readonly RunningRecord[]} records
 */
export function killAll(folder, records) {
  for (const record of records) {
    if (record.container !== undefined) removeContainer(record.container);
    if (isAlive(record)) killGroup(record.pid);
    removeRecord(folder, record.name);
  }
}

/**
 * `docker run --rm` passes SIGTERM on to its container, but a SIGKILL of it leaves that running.
 *
 * @param {string} name
 */
export function removeContainer(name) {
  spawnSync("docker", ["rm", "--force", name], { stdio: "ignore" });
}

/**
 * @param {string} folder
 * @param {RunningRecord} record
 * @param {(record: RunningRecord) => void} onKilled
 */
async function stopOne(folder, record, onKilled) {
  const until = performance.now() + record.graceMs;
  const wasAlive = isAlive(record);
  if (wasAlive) signal(record.pid, "SIGTERM");
  while (isAlive(record) && performance.now() < until) await pause(25);
  if (isAlive(record)) onKilled(record);
  // This also ends what the process itself has started and left behind. Only a container's client
  // starts nothing: where it was gone from the start, its number may be somebody else's by now.
  if (wasAlive || record.container === undefined) killGroup(record.pid);
  if (record.container !== undefined) removeContainer(record.container);
  while (isAlive(record)) await pause(25);
  removeRecord(folder, record.name);
}

/**
 * Each member leads a process group of its own, so the group has the member's number.
 *
 * @param {number} pid
 */
function killGroup(pid) {
  signal(-pid, "SIGKILL");
}

/**
 * @param {number} pid
 * @param {NodeJS.Signals} name
 */
function signal(pid, name) {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (codeOf(error) !== "ESRCH") throw error; // that it is gone already is what we want
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
