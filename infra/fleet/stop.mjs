/**
 * Stops processes in order, by their records. A start stops its own processes; its guard does so
 * after SIGKILL of the start, and the next start if the guard is dead as well.
 */
import { spawnSync } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { isAlive } from "../setup/process-identity.mjs";
import { codeOf } from "../setup/terminal.mjs";
import { removeFile } from "./records.mjs";

/** @typedef {import("./records.mjs").RunningRecord} RunningRecord */

/**
 * Stops the processes order by order. Each gets SIGTERM and its grace; after that, SIGKILL for all
 * of its process group.
 *
 * @param {string} folder of the records' files
 * @param {readonly RunningRecord[]} records
 * @param {{ onKilled?: (record: RunningRecord) => void }} [options] `onKilled` hears of a process
 *   that has outstayed its grace, before SIGKILL
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
 * `docker run --rm` forwards SIGTERM to its container, but after SIGKILL of the client the
 * container keeps running.
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
  // This also ends child processes that the process has left behind. A container's client starts
  // none; if it was gone at the beginning, its number may belong to another process by now.
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
    if (codeOf(error) !== "ESRCH") throw error; // a process that is already gone is fine
  }
}
