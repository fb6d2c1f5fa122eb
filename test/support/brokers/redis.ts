/**
 * A real redis-server that appends to its file before it answers. Every write that the server has
 * acknowledged survives `kill -9`, so a test may count every loss as Baton's.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Redis, type RedisOptions } from "ioredis";
import { startBroker, type Broker } from "./broker.js";
import { endUnrefused, writeUsers } from "./redis-users.js";

type ConnectOptions = Pick<RedisOptions, "retryStrategy">;

export interface RedisServer extends Broker {
  readonly url: string;
  /** Opens a connection for the test itself, past all proxies. The caller closes the connection. */
  connect(more?: ConnectOptions): Redis;
}

/**
 * @param folder for data and log; undefined for a folder of the server's own
 * @param more arguments of the server
 */
export async function startRedis(folder?: string, more: readonly string[] = []): Promise<RedisServer> {
  const broker = await startBroker(
    {
      name: "redis",
      command: "redis-server",
      argumentsFor: (port, place) => {
        const dir = join(place, "redis");
        mkdirSync(dir, { recursive: true });
        const settings = {
          "--bind": "127.0.0.1",
          "--dir": dir,
          "--save": "",
          "--appendonly": "yes",
          "--appendfsync": "always",
          "--maxmemory-policy": "noeviction",
          "--aclfile": writeUsers(dir),
        };
        return ["--port", String(port), ...Object.entries(settings).flat(), ...more];
      },
      ready: /Ready to accept connections/,
    },
    folder,
  );
  const url = `redis://127.0.0.1:${broker.port}`;
  const dispose = broker.dispose.bind(broker);
  return Object.assign(broker, {
    url,
    connect: (more?: ConnectOptions) => connectTo(url, more),
    dispose: () => endUnrefused({ port: broker.port, process: broker.process, dispose }),
  });
}

/**
 * Opens a connection whose commands wait until Redis is back. It sends no pipelines, because a
 * pipeline of which Redis has answered a part before it died fails instead.
 */
export function connectTo(url: string, more: ConnectOptions = {}): Redis {
  const redis = new Redis(url, { protocol: 2, retryStrategy: () => 50, maxRetriesPerRequest: null, ...more });
  redis.on("error", () => undefined); // tests plan outages
  return redis;
}
