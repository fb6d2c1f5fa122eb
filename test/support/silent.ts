/** A log without output, and a NATS that is down. */
import { pino } from "pino";
import type { Bus } from "#shared/nats/connect.js";

export const silentLog = pino({ level: "silent" });

export const silentBus: Bus = {
  publish: () => undefined,
  store: () => Promise.reject(new Error("NATS is down")),
  jetStream: () => Promise.reject(new Error("NATS is down")),
  subscribe: () => Promise.resolve(() => undefined),
  captures: false,
  isUp: () => false,
  connections: () => 0,
  maxBytes: () => 1_000,
  close: () => Promise.resolve(),
};
