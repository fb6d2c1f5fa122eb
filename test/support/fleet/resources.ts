/**
 * What processes hold right now: a leak shows here long before it shows as a failure. Process
 * groups are read from /proc, this process by itself.
 */
import { readdir, readFile } from "node:fs/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

export interface Resources {
  readonly rssBytes: number;
  readonly descriptors: number;
}

/**
 * What each process of the group holds, by its id. Empty where there is no /proc, or where the
 * group is gone.
 */
export async function resourcesOf(group: number): Promise<Map<number, Resources>> {
  const found = new Map<number, Resources>();
  for (const pid of await pidsOf(group)) {
    const [status, descriptors] = await Promise.all([
      quietly(readFile(`/proc/${pid}/status`, "utf8")),
      quietly(readdir(`/proc/${pid}/fd`)),
    ]);
    const rss = /VmRSS:\s+(\d+) kB/.exec(status ?? "")?.[1];
    if (rss !== undefined) found.set(pid, { rssBytes: Number(rss) * 1024, descriptors: descriptors?.length ?? 0 });
  }
  return found;
}

async function pidsOf(group: number): Promise<number[]> {
  const pids = ((await quietly(readdir("/proc"))) ?? []).filter((name) => /^\d+$/.test(name)).map(Number);
  const groups = await Promise.all(pids.map((pid) => quietly(readFile(`/proc/${pid}/stat`, "utf8"))));
  // The line reads: pid (command, which may hold spaces and parentheses) state parent group …
  return pids.filter((_, i) => Number(groups[i]?.replace(/^.*\) /s, "").split(" ")[2]) === group);
}

/** Processes may end while they are being looked at. That is no error here. */
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
  const all = (await Promise.all(groups.map(resourcesOf))).flatMap((group) => [...group.values()]);
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
