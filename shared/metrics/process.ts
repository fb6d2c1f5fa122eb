/** The figures of a process itself that prom-client does not have. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { version } from "../boot.js";
import type { Cells } from "./cells.js";

/** How often the delays of the event loop begin anew, in ms. */
const WINDOW_MS = 10_000;
/** Time between two measurements of the event loop, in ms. */
const RESOLUTION_MS = 10;
const NS_PER_SECOND = 1e9;

export interface CountedProcess {
  readonly role: "gateway" | "jobs" | "worker";
  readonly durability: string;
}

export function showProcess(cells: Cells, { role, durability }: CountedProcess): void {
  cells.show("baton_build_info", { version, node: process.versions.node, role, durability }, () => 1);
  showEventLoop(cells);
}

/** @returns a function that counts dropped spans, for a process that makes traces */
export function droppedSpans(cells: Cells): (spans: number) => void {
  const dropped = cells.counter("baton_spans_dropped_total");
  return (spans) => cells.add(dropped, spans);
}

function showEventLoop(cells: Cells): void {
  const quantiles = [0.5, 0.99, 1];
  const monitor = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  monitor.enable();
  // A timer of the monitor is late by its own interval.
  const read = () =>
    quantiles.map((quantile) => {
      const ns = quantile === 1 ? monitor.max : monitor.percentile(quantile * 100);
      return Math.max(0, ns / NS_PER_SECOND - RESOLUTION_MS / 1_000);
    });
  let last: readonly number[] | undefined;
  setInterval(() => {
    last = read();
    monitor.reset();
  }, WINDOW_MS).unref();
  for (const [i, quantile] of quantiles.entries()) {
    cells.show("baton_event_loop_delay_seconds", { quantile: String(quantile) }, () => (last ?? read())[i] ?? 0);
  }
}
