/**
 * A process that outlives a start which was killed by SIGKILL, and stops what that start has left
 * running. It learns of the death when the channel between the two closes, which the system does
 * for every process that ends. Arguments: the records' folder and the start's process number.
 */
import { join } from "node:path";
import { takeLock } from "../setup/lock.mjs";
import { livingRecords, stopInOrder } from "./stop.mjs";

const [folder = "", owner] = process.argv.slice(2);

process.on("disconnect", () => {
  // The lock is held until this process ends. A start that comes now waits for it, since a second
  // SIGTERM would cut the members' drain short.
  takeLock(join(folder, "../guard.lock"));
  stopInOrder(folder, livingRecords(folder, Number(owner))).then(
    () => process.exit(0),
    () => process.exit(1), // no terminal is left to tell; the next start looks at the records again
  );
});
// A signal for the whole terminal is meant for the start, whose end closes the channel.
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(name, () => {});
