/** What an earlier start left running because it was killed: waited for while its guard stops it, else stopped here. */
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { dropLock, takeLock } from "../setup/lock.mjs";
import { say, step } from "../setup/terminal.mjs";
import { livingRecords } from "./records.mjs";
import { stopInOrder } from "./stop.mjs";

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
