/**
 * What happens to the fleet's processes when their start is killed outright: its guard stops them,
 * or, when the guard was killed too, the next start does.
 */
import { fork } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { dropLock, takeLock } from "../setup/lock.mjs";
import { say, step } from "../setup/terminal.mjs";
import { livingRecords, stopInOrder } from "./stop.mjs";

/**
 * Keeps a guard (guard.mjs) beside this start; a guard that was killed is replaced.
 *
 * @param {string} records
 * @returns {() => void} dismisses it, when nothing is left to guard
 */
export function keepGuard(records) {
  mkdirSync(records, { recursive: true });
  let isDismissed = false;
  const launch = () => {
    // It has a session of its own and no terminal, since it has to outlive both.
    const guard = fork(new URL("./guard.mjs", import.meta.url), [records, String(process.pid)], {
      detached: true,
      stdio: "ignore",
    });
    guard.once("exit", () => {
      if (!isDismissed) setTimeout(() => (current = launch()), 1_000).unref();
    });
    return guard;
  };
  let current = launch();
  return () => {
    isDismissed = true;
    current.kill("SIGKILL");
  };
}

/**
 * Waits while the guard of an earlier start stops its processes, and stops what is left of them.
 *
 * @param {string} home
 * @param {string} records
 */
export async function clearLeftovers(home, records) {
  const lock = join(home, "guard.lock");
  await step("Waiting for an earlier start's processes to stop", async () => {
    while (takeLock(lock) !== undefined) await pause(50);
  });
  dropLock(lock);
  const left = livingRecords(records);
  if (left.length === 0) return;
  say(`An earlier start left ${left.map(({ name, pid }) => `${name} (process ${pid})`).join(", ")} running.`);
  await step("Stopping them", () => stopInOrder(records, left));
}
