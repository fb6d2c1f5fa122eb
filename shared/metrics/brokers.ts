/** The figures of a process's connections to Redis and NATS. */
import type { Cells } from "./cells.js";

/** The client of Redis for short commands. */
export interface CountedRedis {
  readonly status: string;
  on(event: "ready", listener: () => void): unknown;
}

export interface CountedBus {
  isUp(): boolean;
  /** The number of connections so far. */
  connections(): number;
}

/** To be called before the connection to Redis is ready. */
export function showRedis(cells: Cells, redis: CountedRedis): void {
  const reconnects = cells.counter("baton_redis_reconnects_total");
  let isFirst = true;
  redis.on("ready", () => {
    if (!isFirst) cells.add(reconnects);
    isFirst = false;
  });
  cells.show("baton_redis_up", {}, () => (redis.status === "ready" ? 1 : 0));
}

export function showBus(cells: Cells, bus: CountedBus): void {
  cells.show("baton_nats_up", {}, () => (bus.isUp() ? 1 : 0));
  cells.show("baton_nats_reconnects_total", {}, () => Math.max(0, bus.connections() - 1));
}
