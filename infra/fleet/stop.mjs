/** Stops recorded processes in order, each with its grace; what outstays it is killed, with everything in its process group. */
import { spawnSync } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { isAlive } from "../setup/process-identity.mjs";
import { removeRecord } from "./records.mjs";

/**
 * The gateway first: it stops taking requests and sees the accepted ones answered, for which workers and brokers have to be there.
 * Then the workers, which hand back what is left; then the brokers, when nobody writes any more.
 */
export const stopOrder = { gateway: 1, worker: 2, nats: 3, redis: 4 };

export async function stopInOrder(folder, records, { onKilled = () => {} } = {}) {
  const orders = [...new Set(records.map((record) => record.order))].sort((a, b) => a - b);
  for (const order of orders) {
    const together = records.filter((record) => record.order === order);
    await Promise.all(together.map((record) => stopOne(folder, record, onKilled)));
  }
}

/** Without grace and without waiting: for a second Ctrl-C. */
export function killAll(folder, records) {
  for (const record of records) {
    if (record.container !== undefined) removeContainer(record.container);
    if (isAlive(record)) killGroup(record.pid);
    removeRecord(folder, record.name);
  }
}

async function stopOne(folder, record, onKilled) {
  const until = performance.now() + record.graceMs;
  if (isAlive(record)) signal(record.pid, "SIGTERM");
  while (isAlive(record) && performance.now() < until) await pause(25);
  if (isAlive(record)) onKilled(record);
  killGroup(record.pid); // also what the process itself had started and left behind
  if (record.container !== undefined) removeContainer(record.container);
  while (isAlive(record)) await pause(25);
  removeRecord(folder, record.name);
}

/** A process of ours leads a group of its own, so the group's number is its own. */
function killGroup(pid) {
  signal(-pid, "SIGKILL");
}

function signal(pid, name) {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (error.code !== "ESRCH") throw error; // gone already is what we want
  }
}

/** `docker run --rm` passes SIGTERM on; a SIGKILL of it leaves the container running. */
export function removeContainer(name) {
  spawnSync("docker", ["rm", "--force", name], { stdio: "ignore" });
}
