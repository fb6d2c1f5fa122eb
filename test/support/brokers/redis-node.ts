/**
 * A real redis-server with settings of its own, as part of a Cluster or of a replicated Redis, and
 * the calls with which tests inspect it.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { delay } from "#shared/retry.js";
import { until } from "../until.js";
import { startBroker, type Broker } from "./broker.js";
import { connectTo, type RedisServer } from "./redis.js";
import { endUnrefused, writeUsers } from "./redis-users.js";

export interface RedisNode extends Broker {
  /**
   * A connection for the test itself. Its commands wait while the node is down, and `dispose`
   * closes it.
   */
  readonly admin: Redis;
}

/**
 * The longest that a topology may take to settle, or a replica to become a primary, on a slow
 * machine.
 */
const PATIENCE_MS = 45_000;

/**
 * @param name that no other node in `folder` has
 * @param settings of redis.conf, beside the settings of every node
 * @param folder for data and log
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
          aclfile: writeUsers(dir),
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
    await endUnrefused(broker);
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

/** Opens a connection for the test itself, whose commands wait until the server is up. */
export function connectAdmin(port: number): Redis {
  const admin = new Redis({ port, protocol: 2, retryStrategy: () => 50, maxRetriesPerRequest: null });
  admin.on("error", () => undefined); // tests plan outages
  return admin;
}

/** A single field of the reply to INFO. */
export async function infoOf(redis: Redis, field: string): Promise<string | undefined> {
  return new RegExp(`^${field}:(.*)\r$`, "m").exec(await redis.info())?.[1];
}

/**
 * How many replicas confirm the node's writes, in the node's own count. A node may count a replica
 * as late as a second after the replica reports its link as up. Until then, a node that needs a
 * replica refuses writes.
 */
export async function onlineReplicas({ admin }: RedisNode): Promise<number> {
  return (await admin.info("replication")).match(/,state=online,/g)?.length ?? 0;
}

/** A replica gives up by itself after five seconds, and a busy machine may take longer. */
const ASK_AGAIN_MS = 6_000;

/**
 * Asks a replica to take its master's place, and asks again, as an operator does, until the replica
 * is a master. Resolves when the replica has received the first call.
 */
export async function promote(replica: Redis): Promise<void> {
  await settled(async () => (await replica.cluster("FAILOVER")) === "OK");
  void askAgain(replica);
}

async function askAgain(replica: Redis): Promise<void> {
  try {
    for (;;) {
      await delay(ASK_AGAIN_MS);
      if ((await infoOf(replica, "role")) === "master") return;
      await replica.cluster("FAILOVER");
    }
  } catch {
    // The server is down: the test is over, or fails by itself because no server took its place.
  }
}

/** Resolves when the condition holds. A condition that throws does not hold yet. */
export async function settled(condition: () => Promise<boolean>): Promise<void> {
  await until(() => condition().catch(() => false), PATIENCE_MS);
}
