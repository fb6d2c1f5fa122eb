/**
 * Stopping processes in order, by their records. A start stops its own; its guard does so when the
 * start was killed, and the next start when the guard was killed as well.
 */
import { spawnSync } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { isAlive } from "../setup/process-identity.mjs";
import { codeOf } from "../setup/terminal.mjs";
import { removeFile } from "./records.mjs";

/** @typedef {import("./records.mjs").RunningRecord} RunningRecord */

/**
 * Stops processes one order after the other. Each gets SIGTERM and its grace; after that it is
 * killed, with everything in its process group.
 *
 * @param {string} folder of the records' files
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
 * @param {string} folder of the records' files
 * @param {readonly RunningRecord[]} records
 */
export function killAll(folder, records) {
  for (const record of records) {
    if (record.container !== undefined) removeContainer(record.container);
    if (isAlive(record)) killGroup(record.pid);
    removeFile(folder, record);
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
  removeFile(folder, record);
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
