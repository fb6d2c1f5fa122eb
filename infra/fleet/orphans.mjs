/**
 * Stops the fleet's processes after SIGKILL of their start: the start's guard stops them, or, if
 * the guard is dead too, the next start does.
 */
import { fork } from "node:child_process";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { dropLock, takeLock } from "../setup/lock.mjs";
import { say, step } from "../setup/terminal.mjs";
import { leftRecords } from "./records.mjs";
import { stopInOrder } from "./stop.mjs";

/**
 * Keeps a guard (guard.mjs) beside this start, sends the list of processes to the guard, and
 * replaces a dead guard.
 *
 * @param {import("./records.mjs").Records} records
 * @returns {() => void} dismisses the guard, when no process is left
 */
export function keepGuard(records) {
  let isDismissed = false;
  const launch = () => {
    // The guard has a new session and no terminal, because it has to outlive the start's session
    // and terminal.
    const guard = fork(new URL("./guard.mjs", import.meta.url), [records.folder], {
      detached: true,
      stdio: "ignore",
    });
    guard.once("exit", () => {
      if (!isDismissed) setTimeout(() => (current = launch()), 1_000).unref();
    });
    tell(guard, records.held);
    return guard;
  };
  let current = launch();
  records.onChange((held) => tell(current, held));
  return () => {
    isDismissed = true;
    current.kill("SIGKILL");
  };
}

/**
 * @param {import("node:child_process").ChildProcess} guard
 * @param {import("./records.mjs").RunningRecord[]} held
 */
function tell(guard, held) {
  // A dead guard gets nothing; its replacement gets the whole list.
  if (guard.connected) guard.send(held, () => {});
}

/**
 * Waits while the guard of an earlier start stops that start's processes, and stops the rest.
 *
 * @param {string} home
 * @param {string} records the folder of the records' files
 */
export async function clearLeftovers(home, records) {
  const lock = join(home, "guard.lock");
  await step("Waiting for an earlier start's processes to stop", async () => {
    while (takeLock(lock) !== undefined) await pause(50);
  });
  dropLock(lock);
  const left = leftRecords(records);
  if (left.length === 0) return;
  say(`An earlier start left ${left.map(({ name, pid }) => `${name} (process ${pid})`).join(", ")} running.`);
  await step("Stopping them", () => stopInOrder(records, left));
}
