/**
 * Free ports below the kernel's ephemeral range. If a test used a port from that range (bind 0),
 * any outgoing connection could take the port while its server is down. A client that keeps
 * dialling could even connect to itself. Both would look like faults of Baton.
 */
import { createServer } from "node:net";

const LOWEST = 12_000;
const HIGHEST = 32_000;
/**
 * Test files that run side by side take ports of different parts. Else a test could take the port
 * of a broker that another test has killed and will restart on the same port.
 */
const PARTS = 4;
const PART_PORTS = (HIGHEST - LOWEST) / PARTS;
/** Vitest counts the processes that run side by side from 1. */
const first = LOWEST + (Number(process.env["VITEST_POOL_ID"] ?? 0) % PARTS) * PART_PORTS;
const given = new Set<number>();

/**
 * Finds a port that is free now. If another process takes the port first, the caller tries again
 * with another port.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = first + Math.floor(Math.random() * PART_PORTS);
    if (given.has(port)) continue;
    // Before the probe, because two gateways of a fleet may ask at once.
    given.add(port);
    if (await canListen(port)) return port;
  }
  throw new Error("no free port in 200 attempts");
}

/** Calls `start` with up to five free ports, until `start` no longer fails because of the port. */
export async function onFreePort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(await freePort());
    } catch (error) {
      if (attempt === 5 || !/address already in use|EADDRINUSE/i.test(String(error))) throw error;
    }
  }
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
