/**
 * A real primary with two replicas, and three Sentinels that watch the primary. About three seconds
 * after a test kills or freezes the primary, a replica takes its place.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { startBroker, type Broker } from "./broker.js";
import { connectAdmin, infoOf, onlineReplicas, settled, startRedisNode, type RedisNode } from "./redis-node.js";

const REPLICAS = 2;
const SENTINELS = 3;
const NAME = "main";

export interface WatchedRedis {
  readonly url: string;
  /** The primary's name among the Sentinels. */
  readonly name: string;
  /** All servers, the first primary first. */
  readonly nodes: readonly RedisNode[];
  readonly sentinels: readonly Broker[];
  /** The server that most Sentinels name now. */
  primary(): Promise<RedisNode>;
  /**
   * Resolves when the Sentinels name a primary other than `former`, and the new primary takes
   * writes.
   */
  whenReplaced(former: RedisNode): Promise<void>;
  /** Asks for a failover while every server is up. */
  handOver(): Promise<void>;
  /**
   * Resolves when all living servers except the primary are replicas and have all of the primary's
   * data.
   */
  whenWhole(): Promise<void>;
  dispose(): Promise<void>;
}

/** Lines over which every client reaches the servers, and the servers each other. */
export interface WatchedLines {
  /** Address of the lines. Each line has the port of its server. */
  readonly host: string;
  /** Opens the line to the server with this port. */
  open(port: number): Promise<void>;
}

/** @param settings of redis.conf, for every server */
export async function startWatchedRedis(
  settings: Readonly<Record<string, string>> = {},
  lines?: WatchedLines,
): Promise<WatchedRedis> {
  const host = lines?.host ?? "127.0.0.1";
  const folder = mkdtempSync(join(tmpdir(), "baton-sentinel-"));
  const nodes: RedisNode[] = [];
  const sentinels: { readonly broker: Broker; readonly admin: Redis }[] = [];
  const dispose = async () => {
    for (const { admin } of sentinels) admin.disconnect();
    await Promise.all([...sentinels.map(({ broker }) => broker.dispose()), ...nodes.map((node) => node.dispose())]);
    rmSync(folder, { recursive: true, force: true });
  };

  async function named(): Promise<RedisNode | undefined> {
    const said = await Promise.all(
      sentinels
        .filter(({ broker }) => broker.process.alive)
        .map(async ({ admin }) => {
          const address = (await admin.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)) as string[];
          return Number(address[1]);
        }),
    );
    const count = (port: number) => said.filter((other) => other === port).length;
    return nodes.find(({ port }) => count(port) > SENTINELS / 2);
  }
  const whenWhole = () =>
    settled(async () => {
      const primary = await named();
      const living = nodes.filter((node) => node.process.alive);
      if (primary === undefined || !primary.process.alive) return false;
      const replicas = await onlineReplicas(primary);
      const seen = await Promise.all(
        sentinels.map(async ({ admin }) => {
          const state = (await admin.call("SENTINEL", "MASTER", NAME)) as string[];
          const field = (field: string) => Number(state[state.indexOf(field) + 1]);
          return field("num-slaves") >= REPLICAS && field("num-other-sentinels") === SENTINELS - 1;
        }),
      );
      return replicas === living.length - 1 && seen.every(Boolean);
    });

  const start = async (i: number, more: Readonly<Record<string, string>>) => {
    const node = await startRedisNode(
      `redis-${i}`,
      () => ({ "replica-announce-ip": host, ...more, ...settings }),
      folder,
    );
    nodes.push(node);
    await lines?.open(node.port);
    return node;
  };

  try {
    const primary = await start(0, {});
    for (let i = 1; i <= REPLICAS; i++) await start(i, { replicaof: `${host} ${primary.port}` });
    for (let i = 0; i < SENTINELS; i++) {
      const broker = await startSentinel(i, `${host} ${primary.port}`, folder);
      sentinels.push({ broker, admin: connectAdmin(broker.port) });
    }
    await whenWhole();
  } catch (error) {
    await dispose();
    throw error;
  }
  return {
    url: `redis+sentinel://${sentinels.map(({ broker }) => `127.0.0.1:${broker.port}`).join(",")}/${NAME}`,
    name: NAME,
    nodes,
    sentinels: sentinels.map(({ broker }) => broker),
    async primary() {
      const node = await named();
      if (node === undefined) throw new Error("the Sentinels do not agree");
      return node;
    },
    whenReplaced: (former) =>
      settled(async () => {
        const now = await named();
        return now !== undefined && now !== former && (await infoOf(now.admin, "role")) === "master";
      }),
    async handOver() {
      // The Sentinels refuse a failover too soon after the last.
      const [sentinel] = sentinels;
      await settled(async () => (await sentinel?.admin.call("SENTINEL", "FAILOVER", NAME)) === "OK");
    },
    whenWhole,
    dispose,
  };
}

/** A Sentinel is the same program, and keeps its state in the file of its settings. */
function startSentinel(i: number, primary: string, folder: string): Promise<Broker> {
  const name = `sentinel-${i}`;
  return startBroker(
    {
      name,
      command: "redis-server",
      argumentsFor: (port, place) => {
        const file = join(place, `${name}-${port}.conf`);
        const lines = [
          `port ${port}`,
          "bind 127.0.0.1",
          `dir ${place}`,
          `sentinel monitor ${NAME} ${primary} 2`,
          `sentinel down-after-milliseconds ${NAME} 1500`,
          `sentinel failover-timeout ${NAME} 6000`,
        ];
        writeFileSync(file, `${lines.join("\n")}\n`);
        return [file, "--sentinel"];
      },
      ready: /Sentinel ID is/,
    },
    folder,
  );
}
