/**
 * What happens to the fleet's processes when their start is killed outright: its guard stops them,
 * or, when the guard was killed too, the next start does.
 */
import { fork } from "node:child_process";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { dropLock, takeLock } from "../setup/lock.mjs";
import { say, step } from "../setup/terminal.mjs";
import { leftRecords } from "./records.mjs";
import { stopInOrder } from "./stop.mjs";

/**
 * Keeps a guard (guard.mjs) beside this start, and has it know the start's processes. A guard that
 * was killed is replaced.
 *
 * @param {import("./records.mjs").Records} records
 * @returns {() => void} dismisses it, when nothing is left to guard
 */
export function keepGuard(records) {
  let isDismissed = false;
  const launch = () => {
    // It has a session of its own and no terminal, since it has to outlive both.
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
  // A guard that has died is told nothing, and the one that replaces it hears of all processes.
  if (guard.connected) guard.send(held, () => {});
}

/**
 * Waits while the guard of an earlier start stops its processes, and stops what is left of them.
 *
 * @param {string} home
 * @param {string} records the folder of their files
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
