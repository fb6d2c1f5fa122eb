/** Measures what a process uses of its machine, from one reading to the next. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { z } from "zod";

export const processLoad = z.object({
  /** Of one CPU, since the reading before; more than 1 if several threads compute. */
  cpuRatio: z.number(),
  /** The longest delay of the event loop since the reading before. */
  eventLoopMs: z.number(),
  memoryBytes: z.number(),
});

export type ProcessLoad = Readonly<z.infer<typeof processLoad>>;

/** Time between two measurements of the event loop, in ms. */
const RESOLUTION_MS = 20;
const NS_PER_MS = 1e6;

export class LoadMeter {
  readonly #loop = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  #cpu = process.cpuUsage();
  #at = performance.now();

  constructor() {
    this.#loop.enable();
  }

  read(): ProcessLoad {
    const now = performance.now();
    const { user, system } = process.cpuUsage(this.#cpu);
    const cpuRatio = (user + system) / 1_000 / Math.max(1, now - this.#at);
    // A timer of the monitor is late by its own interval.
    const eventLoopMs = Math.max(0, this.#loop.max / NS_PER_MS - RESOLUTION_MS);
    this.#cpu = process.cpuUsage();
    this.#at = now;
    this.#loop.reset();
    return { cpuRatio: rounded(cpuRatio), eventLoopMs: rounded(eventLoopMs), memoryBytes: process.memoryUsage.rss() };
  }

  stop(): void {
    this.#loop.disable();
  }
}

/** To three digits: more say nothing of a load. */
export function rounded(value: number): number {
  return Number(value.toPrecision(3));
}
