/** CPU time of whole process groups, from the kernel's counters, with children that still live. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/** Milliseconds of user and system time together. */
export interface Cpu {
  readonly total: number;
  /**
   * Milliseconds of the main threads alone: in a worker, all but the model and ONNX Runtime's own
   * helper threads.
   */
  readonly mainThreads: number;
}

/** The kernel counts in ticks, almost always 100 a second, so a measurement must take seconds. */
const tickMs = 1_000 / Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));

/** @returns the CPU time of each group, in the order of `groups` */
export function cpuOf(groups: readonly number[]): Cpu[] {
  const spent = new Map(groups.map((group) => [group, { total: 0, mainThreads: 0 }]));
  for (const pid of readdirSync("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    const process = stat(`/proc/${pid}/stat`);
    const cpu = spent.get(process.group);
    if (cpu === undefined) continue;
    cpu.total += process.ms;
    cpu.mainThreads += stat(`/proc/${pid}/task/${pid}/stat`).ms;
  }
  return groups.map((group) => spent.get(group) ?? { total: 0, mainThreads: 0 });
}

/**
 * The CPU time of all processes of the machine but this one, and of its host's other guests, in ms.
 * This process reads the logs of the fleet that it measures.
 */
export function busyMs(): number {
  const own = process.cpuUsage();
  const [line = ""] = readFileSync("/proc/stat", "utf8").split("\n", 1);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = line.split(/ +/).slice(1).map(Number);
  return (user + nice + system + irq + softirq + steal) * tickMs - (own.user + own.system) / 1_000;
}

/**
 * The share of the machine, from 0 to 1, that others took while a measurement ran. More than a
 * twentieth makes its times doubtful.
 * @param busy the machine's CPU time meanwhile, in ms
 * @param own the CPU time of the measured processes and of their load, in ms
 */
export function othersShare(busy: number, own: number, elapsedMs: number): number {
  return Math.max(0, busy - own) / (elapsedMs * availableParallelism());
}

function stat(file: string): { group: number; ms: number } {
  try {
    // The fields from the third on, the state. The second field, the command, may hold spaces and
    // parentheses.
    const fields = readFileSync(file, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ")
      .map(Number);
    return { group: fields[2] ?? -1, ms: ((fields[11] ?? 0) + (fields[12] ?? 0)) * tickMs };
  } catch {
    return { group: -1, ms: 0 }; // ended meanwhile
  }
}
