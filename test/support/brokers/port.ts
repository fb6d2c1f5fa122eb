/**
 * Free ports below the kernel's ephemeral range. If a test used a port from that range (bind 0),
 * any outgoing connection could take the port while its server is down. A client that keeps
 * dialling could even connect to itself. Both would look like faults of Baton.
 */
import { createServer } from "node:net";

const LOWEST = 12_000;
const HIGHEST = 32_000;

/**
 * Finds a port that is free now, and that no other test takes until this process ends. Else a test
 * could take the port of a broker that another test has killed and will restart on the same port.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));
    if ((await reserve(port)) && (await canListen(port))) return port;
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

/**
 * Reserves a port among all tests of the machine, for as long as this process lives: a socket in
 * Linux's abstract name space has the port's name. Elsewhere there is no such name space, and two
 * test files that run side by side may meet by chance.
 * @returns false if a test has reserved the port
 */
function reserve(port: number): Promise<boolean> {
  if (process.platform !== "linux") return Promise.resolve(true);
  return new Promise((resolve) => {
    const name = createServer().unref();
    name.once("error", () => resolve(false));
    name.listen({ path: `\0baton-test-port-${port}` }, () => resolve(true));
  });
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
