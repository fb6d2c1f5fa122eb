/** CPU time of whole process groups, children that still live included, as the kernel counts it. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** Of the kernel's ticks, almost always 100 a second: measure for seconds. */
const tickMs = 1_000 / Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));

/** @returns milliseconds by group, user and system together. */
export function cpuOf(groups: readonly number[]): number[] {
  const spent = new Map(groups.map((group) => [group, 0]));
  for (const pid of readdirSync("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    const fields = stat(pid);
    const group = Number(fields[2]);
    const before = spent.get(group);
    if (before !== undefined) spent.set(group, before + (Number(fields[11]) + Number(fields[12])) * tickMs);
  }
  return groups.map((group) => spent.get(group) ?? 0);
}

/** From the third field on, the state: the second, the command, may hold spaces and parentheses. */
function stat(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
  } catch {
    return []; // ended meanwhile
  }
}
