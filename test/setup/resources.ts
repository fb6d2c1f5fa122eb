/** What a process group holds right now, read from /proc: a leak shows here long before it shows as a failure. */
import { readdir, readFile } from "node:fs/promises";

export interface Resources {
  readonly rssBytes: number;
  readonly descriptors: number;
}

/** One entry per process of the group; empty where there is no /proc, or the group is gone. */
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
  // pid (command, which may hold spaces and parentheses) state parent group …
  return pids.filter((_, i) => Number(groups[i]?.replace(/^.*\) /s, "").split(" ")[2]) === group);
}

/** Processes end while they are being looked at; that is no error here. */
async function quietly<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    if (["ENOENT", "ESRCH", "EACCES"].includes(code)) return undefined;
    throw error;
  }
}
