/**
 * The identity of a process behind a process number. The system uses numbers again, so a record of
 * a process also has the identity. Without it, stopping yesterday's Redis could kill today's
 * editor.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename } from "node:path";

/**
 * A string that no other process has, or undefined if the process has ended (a zombie has). On
 * Linux the string is the boot and the start time, elsewhere the start time and the command line.
 *
 * @param {number} pid
 */
export function identify(pid) {
  if (process.platform !== "linux") {
    const line = ps("stat=,lstart=,command=", pid);
    // The first word is the state, which changes; the rest does not.
    return line === "" || line.startsWith("Z") ? undefined : line.replace(/^\S+\s+/, "");
  }
  try {
    const { state, startTicks } = readStat(pid);
    if (state === "Z" || state === "X") return undefined;
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${boot} ${startTicks}`;
  } catch {
    return undefined; // no such process
  }
}

/**
 * The program's name and the parent's process number, of a living process.
 *
 * @param {number} pid
 */
export function lineage(pid) {
  if (process.platform === "linux") return readStat(pid);
  const [parent = "", name = ""] = ps("ppid=,comm=", pid).split(/\s+/);
  return { name: basename(name), parent: Number(parent) };
}

/** @param {{ pid: number, identity?: string | undefined }} recorded */
export function isAlive({ pid, identity }) {
  return identity !== undefined && identify(pid) === identity;
}

/** @param {number} pid */
function readStat(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const nameEnd = stat.lastIndexOf(")"); // the name may hold spaces and parentheses
  const fields = stat.slice(nameEnd + 2).split(" ");
  return {
    name: stat.slice(stat.indexOf("(") + 1, nameEnd),
    state: fields[0],
    parent: Number(fields[1]),
    startTicks: fields[19],
  };
}

/**
 * @param {string} columns
 * @param {number} pid
 */
function ps(columns, pid) {
  return (spawnSync("ps", ["-o", columns, "-p", String(pid)], { encoding: "utf8" }).stdout ?? "").trim();
}
