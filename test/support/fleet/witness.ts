/**
 * How fast a gateway answers its health check, and how much memory it takes, while a test works on
 * it.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";

export interface Seen {
  readonly asked: number;
  readonly p99Ms: number;
  readonly worstMs: number;
  /** The gateway's highest memory, less its memory at the start. */
  readonly grownBytes: number;
}

/** @param pid process id of the gateway at `url` */
export async function witnessed(url: string, pid: number, deed: () => Promise<void>): Promise<Seen> {
  const thread = new Worker(new URL("./witness-thread.mjs", import.meta.url), { workerData: { url, pid } });
  try {
    const [{ idleBytes }] = (await once(thread, "message")) as [{ idleBytes: number }];
    await deed();
    thread.postMessage("stop", []);
    const [{ tookMs, peakBytes }] = (await once(thread, "message")) as [{ tookMs: number[]; peakBytes: number }];
    tookMs.sort((a, b) => a - b);
    return {
      asked: tookMs.length,
      p99Ms: tookMs[Math.ceil(tookMs.length * 0.99) - 1] ?? Infinity,
      worstMs: tookMs.at(-1) ?? Infinity,
      grownBytes: peakBytes - idleBytes,
    };
  } finally {
    await thread.terminate();
  }
}
