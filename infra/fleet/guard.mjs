/**
 * A process that outlives a start which was killed by SIGKILL, and stops what that start has left
 * running. It learns of the death when the channel between the two closes, which the system does
 * for every process that ends. Until then the start sends over this channel which processes it has,
 * so the guard needs no file. Argument: the folder of the records' files.
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
    () => process.exit(1), // no terminal is left to tell; the next start looks at the records again
  );
}

/**
 * The lock is held until this process ends. A start that comes now waits for it, since a second
 * SIGTERM would cut the members' drain short.
 */
function keepNextStartWaiting() {
  try {
    takeLock(join(dirname(folder), "guard.lock"));
  } catch {
    // No start can come where nothing can be written; the processes have to end all the same.
  }
}
