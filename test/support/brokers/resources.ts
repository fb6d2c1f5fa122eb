/**
 * The memory and descriptors that processes hold now: a leak shows here long before it shows as a
 * failure. Figures of process groups come from /proc, figures of this process from Node.
 */
import { readdir, readFile } from "node:fs/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

export interface Resources {
  readonly rssBytes: number;
  readonly descriptors: number;
}

/**
 * The resources of each process of the group, by process id. Empty if the group has ended, or on a
 * system without /proc.
 */
export async function resourcesOf(group: number): Promise<Map<number, Resources>> {
  const [found = new Map<number, Resources>()] = await resourcesOfEach([group]);
  return found;
}

/**
 * The same for several groups, in their order, in a single pass over all processes of the machine.
 */
export async function resourcesOfEach(groups: readonly number[]): Promise<Map<number, Resources>[]> {
  const found = new Map(groups.map((group) => [group, new Map<number, Resources>()]));
  const pids = ((await quietly(readdir("/proc"))) ?? []).filter((name) => /^\d+$/.test(name)).map(Number);
  // One file after another, because the machine has thousands of processes, and fewer descriptors.
  for (const pid of pids) {
    const stat = await quietly(readFile(`/proc/${pid}/stat`, "utf8"));
    // The line reads: pid (command, which may hold spaces and parentheses) state parent group …
    const members = found.get(Number(stat?.replace(/^.*\) /s, "").split(" ")[2]));
    if (members === undefined) continue;
    const [status, descriptors] = await Promise.all([
      quietly(readFile(`/proc/${pid}/status`, "utf8")),
      quietly(readdir(`/proc/${pid}/fd`)),
    ]);
    const rss = /VmRSS:\s+(\d+) kB/.exec(status ?? "")?.[1];
    if (rss !== undefined) members.set(pid, { rssBytes: Number(rss) * 1024, descriptors: descriptors?.length ?? 0 });
  }
  return groups.map((group) => found.get(group) ?? new Map<number, Resources>());
}

/** A process may end while this code reads its files. That is no error here. */
async function quietly<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    if (["ENOENT", "ESRCH", "EACCES"].includes(code)) return undefined;
    throw error;
  }
}

/** The sum over all processes of several groups. */
export async function heldTogether(groups: readonly number[]): Promise<Resources> {
  const all = (await resourcesOfEach(groups)).flatMap((group) => [...group.values()]);
  const sum = (of: (one: Resources) => number) => all.reduce((total, one) => total + of(one), 0);
  return { rssBytes: sum(({ rssBytes }) => rssBytes), descriptors: sum(({ descriptors }) => descriptors) };
}

/** Bytes that this process holds in memory, garbage aside. */
export function heldBytes(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
