/**
 * Outlives a start that was killed by SIGKILL, and stops what it left running. It learns of the death by the closing of its channel,
 * which no process can forget to do. Arguments: the records' folder, the start's process number.
 */
import { join } from "node:path";
import { takeLock } from "../setup/lock.mjs";
import { livingRecords } from "./records.mjs";
import { stopInOrder } from "./stop.mjs";

const [folder, owner] = process.argv.slice(2);

process.on("disconnect", () => {
  // Held until this process ends: a start that comes now waits for it, since a second SIGTERM would cut the drain short.
  takeLock(join(folder, "../guard.lock"));
  stopInOrder(folder, livingRecords(folder, Number(owner))).then(
    () => process.exit(0),
    () => process.exit(1), // no terminal is left to tell; the next start looks at the records again
  );
});
// Whoever signals the whole terminal means the start, which tells us by closing the channel.
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(name, () => {});
