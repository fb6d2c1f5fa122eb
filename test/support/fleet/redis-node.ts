/**
 * What the servers of a Cluster and of a replicated Redis have in common: a real redis-server with
 * settings of its own, and how tests talk to it.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { until } from "../until.js";
import { startBroker, type Broker } from "./broker.js";
import { connectTo, type RedisServer } from "./redis.js";

export interface RedisNode extends Broker {
  /** A connection for the test itself. It waits while the node is away, and closes with it. */
  readonly admin: Redis;
}

/** How long a topology may take to settle, or a replica to be promoted, on a slow machine. */
const PATIENCE_MS = 45_000;

/**
 * @param name unlike that of any other node in `folder`
 * @param settings of redis.conf, beside those that every node has
 * @param folder where its data and log go
 */
export async function startRedisNode(
  name: string,
  settings: (port: number) => Readonly<Record<string, string>>,
  folder: string,
): Promise<RedisNode> {
  const broker = await startBroker(
    {
      name,
      command: "redis-server",
      argumentsFor: (port, place) => {
        const dir = join(place, `${name}-data`);
        mkdirSync(dir, { recursive: true });
        const all = {
          bind: "127.0.0.1",
          dir,
          save: "",
          appendonly: "yes",
          appendfsync: "always",
          "maxmemory-policy": "noeviction",
          "repl-diskless-sync-delay": "0",
          ...settings(port),
        };
        return ["--port", String(port), ...Object.entries(all).flatMap(([key, value]) => [`--${key}`, value])];
      },
      ready: /Ready to accept connections/,
    },
    folder,
  );
  const admin = connectAdmin(broker.port);
  const dispose = async () => {
    admin.disconnect();
    await broker.dispose();
  };
  return {
    get port() {
      return broker.port;
    },
    get process() {
      return broker.process;
    },
    admin,
    kill: () => broker.kill(),
    restart: () => broker.restart(),
    freeze: () => broker.freeze(),
    thaw: () => broker.thaw(),
    dispose,
  };
}

/** The node as a server of a store. */
export function serverAt(node: RedisNode): RedisServer {
  const url = `redis://127.0.0.1:${node.port}`;
  return {
    url,
    connect: (more) => connectTo(url, more),
    port: node.port,
    get process() {
      return node.process;
    },
    kill: () => node.kill(),
    restart: () => node.restart(),
    freeze: () => node.freeze(),
    thaw: () => node.thaw(),
    dispose: () => node.dispose(),
  };
}

/** A connection for the test itself: its commands wait until the server is there. */
export function connectAdmin(port: number): Redis {
  const admin = new Redis({ port, protocol: 2, retryStrategy: () => 50, maxRetriesPerRequest: null });
  admin.on("error", () => undefined); // tests plan outages
  return admin;
}

/** One field of what INFO says. */
export async function infoOf(redis: Redis, field: string): Promise<string | undefined> {
  return new RegExp(`^${field}:(.*)\r$`, "m").exec(await redis.info())?.[1];
}

/**
 * How many replicas the node counts as those that confirm what it writes. It counts one up to a
 * second after the replica itself says that the link is up, and refuses writes until then where it
 * needs one.
 */
export async function onlineReplicas({ admin }: RedisNode): Promise<number> {
  return (await admin.info("replication")).match(/,state=online,/g)?.length ?? 0;
}

/** Resolves when the condition holds. What it throws meanwhile means that it does not hold. */
export async function settled(condition: () => Promise<boolean>): Promise<void> {
  await until(() => condition().catch(() => false), PATIENCE_MS);
}
