/** A real redis-server in mode `strict`: what it has acknowledged survives `kill -9`, so a test may count every loss as ours. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { startBroker, type Broker } from "./broker.js";

export interface RedisServer extends Broker {
  readonly url: string;
  /** A connection of the test's own, past all proxies; the caller closes it. */
  connect(): Redis;
}

/** @param folder where data and log go; the caller removes it. */
export async function startRedis(folder: string, extra: readonly string[] = []): Promise<RedisServer> {
  const dir = join(folder, "redis");
  mkdirSync(dir, { recursive: true });
  const settings = {
    "--bind": "127.0.0.1",
    "--dir": dir,
    "--save": "",
    "--appendonly": "yes",
    "--appendfsync": "always",
    "--maxmemory-policy": "noeviction",
  };
  const broker = await startBroker({
    ready: /Ready to accept connections/,
    launch: (port) => ({
      name: "redis",
      command: "redis-server",
      args: ["--port", String(port), ...Object.entries(settings).flat(), ...extra],
      logFile: join(folder, "redis.log"),
    }),
  });
  const url = `redis://127.0.0.1:${broker.port}`;
  return Object.assign(broker, {
    url,
    connect() {
      const redis = new Redis(url, { protocol: 2, retryStrategy: () => 50, maxRetriesPerRequest: null });
      redis.on("error", () => undefined); // outages are this suite's trade; commands wait until it is back
      return redis;
    },
  });
}
