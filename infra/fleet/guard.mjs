/**
 * The guard: a process that outlives a start after SIGKILL, and stops the start's processes. The
 * guard learns of the death when the channel to the start closes, which the system does for every
 * process that ends. Until then the start sends the list of its processes over this channel, so the
 * guard needs no file. Argument: the folder of the records' files.
 */
import { dirname, join } from "node:path";
import { takeLock } from "../setup/lock.mjs";
import { living } from "./records.mjs";
import { stopInOrder } from "./stop.mjs";

const [folder = ""] = process.argv.slice(2);
/** @type {import("./records.mjs").RunningRecord[]} */
let held = [];

process.on("message", (/** @type {import("./records.mjs").RunningRecord[]} */ now) => (held = now));
// A start that was killed while this file loaded has closed the channel already.
if (process.connected) process.once("disconnect", stopAll);
else setImmediate(stopAll);
// A signal for the whole terminal is meant for the start, whose end closes the channel.
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(name, () => {});

function stopAll() {
  keepNextStartWaiting();
  stopInOrder(folder, living(held)).then(
    () => process.exit(0),
    () => process.exit(1), // no terminal is left; the next start looks at the records again
  );
}

/**
 * Takes the lock until this process ends. A start that comes now waits for the lock, because a
 * second SIGTERM would cut the members' drain short.
 */
function keepNextStartWaiting() {
  try {
    takeLock(join(dirname(folder), "guard.lock"));
  } catch {
    // If this folder refuses writes, no start can come; the processes have to end all the same.
  }
}
