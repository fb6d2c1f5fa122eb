/**
 * Which process a number means. Numbers are used again, so a record of a process keeps its start time and command line too;
 * without that, stopping yesterday's Redis could kill today's editor.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename } from "node:path";

/** A string that no other process has, or undefined when that process is gone (a zombie is gone). */
export function identify(pid) {
  if (process.platform !== "linux") {
    const { stdout } = spawnSync("ps", ["-o", "stat=,lstart=,command=", "-p", String(pid)], { encoding: "utf8" });
    const line = (stdout ?? "").trim();
    return line === "" || line.startsWith("Z") ? undefined : line.replace(/^\S+\s+/, ""); // the state changes, the rest does not
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" "); // the name before it may hold spaces
    const [state, startTicks] = [fields[0], fields[19]];
    if (state === "Z" || state === "X") return undefined;
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${boot} ${startTicks}`;
  } catch {
    return undefined; // no such process
  }
}

/** The parent's number and the program's name, of a living process. */
export function lineage(pid) {
  if (process.platform === "linux") {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const name = stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"));
    return { name, parent: Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) };
  }
  const { stdout } = spawnSync("ps", ["-o", "ppid=,comm=", "-p", String(pid)], { encoding: "utf8" });
  const [parent, name] = stdout.trim().split(/\s+/);
  return { name: basename(name), parent: Number(parent) };
}

export function isAlive({ pid, identity }) {
  return identity !== undefined && identify(pid) === identity;
}
