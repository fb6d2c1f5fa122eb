/** What a group of processes holds at a time: memory, descriptors, and V8's heaps. */
import { readdirSync, readFileSync } from "node:fs";

export interface Held {
  readonly residentMb: number;
  readonly descriptors: number;
}

const PAGE_BYTES = 4_096;

/** @param group the process group of a member: its first process and all that this one started */
export function heldBy(group: number): Held {
  let [residentMb, descriptors] = [0, 0];
  for (const pid of readdirSync("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    try {
      const [, , ofGroup] = readFileSync(`/proc/${pid}/stat`, "utf8")
        .replace(/^.*\) /s, "")
        .split(" ");
      if (Number(ofGroup) !== group) continue;
      const [, pages] = readFileSync(`/proc/${pid}/statm`, "utf8").split(" ");
      residentMb += (Number(pages) * PAGE_BYTES) / 1e6;
      descriptors += readdirSync(`/proc/${pid}/fd`).length;
    } catch {
      // The process ended meanwhile.
    }
  }
  return { residentMb, descriptors };
}

/**
 * V8 prints `[pid:isolate] 123 ms: Mark-Compact 8.1 (9.4) -> 7.2 (10.4) MB, …` with `--trace-gc`.
 * The second size is what a full collection left.
 */
const COLLECTED = /^\[(\d+:0x[0-9a-f]+)\].*: Mark-Compact.* -> (\d+(?:\.\d+)?) \(/;

/** @returns for each heap of these lines, in MB, the least that a full collection left */
export function heapsOf(lines: readonly { readonly text: string }[]): ReadonlyMap<string, number> {
  const least = new Map<string, number>();
  for (const { text } of lines) {
    const [, heap = "", mb] = COLLECTED.exec(text) ?? [];
    if (mb !== undefined) least.set(heap, Math.min(least.get(heap) ?? Infinity, Number(mb)));
  }
  return least;
}
