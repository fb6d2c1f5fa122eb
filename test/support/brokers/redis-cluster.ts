/**
 * A real Redis Cluster: three masters that share the slots out, and a replica of each. About three
 * seconds after a test kills or freezes a master, its replica takes its place.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { slotOf } from "#shared/redis/slots.js";
import { freePort } from "./port.js";
import { infoOf, onlineReplicas, settled, startRedisNode, type RedisNode } from "./redis-node.js";

const MASTERS = 3;
const SLOTS = 16_384;
/** After this time without an answer a master counts as failed. */
const NODE_TIMEOUT_MS = 1_500;

export interface RedisCluster {
  readonly url: string;
  /** How many of the nodes are masters. */
  readonly masters: number;
  /** All nodes, the first masters first. */
  readonly nodes: readonly RedisNode[];
  /** The node that serves the key's slot now, as the living masters agree. */
  masterOf(key: string): Promise<RedisNode>;
  /**
   * The nodes that serve slots now, without a master that has just come back and does not know yet
   * that its replica has taken its place.
   */
  mastersNow(): Promise<readonly RedisNode[]>;
  /** Resolves when a node other than `former` serves the key's slot, and all slots have a node. */
  whenReplaced(key: string, former: RedisNode): Promise<void>;
  /** Resolves when every node is up and every replica has all of its master's data. */
  whenWhole(): Promise<void>;
  dispose(): Promise<void>;
}

/** @param settings of redis.conf, for every node */
export async function startRedisCluster(settings: Readonly<Record<string, string>> = {}): Promise<RedisCluster> {
  const folder = mkdtempSync(join(tmpdir(), "baton-cluster-"));
  const nodes: RedisNode[] = [];
  const dispose = async () => {
    await Promise.all(nodes.map((node) => node.dispose()));
    rmSync(folder, { recursive: true, force: true });
  };
  const start = async (i: number) => {
    const bus = String(await freePort());
    const own = (port: number) => ({
      "cluster-enabled": "yes",
      "cluster-config-file": `nodes-${port}.conf`,
      "cluster-port": bus,
      "cluster-node-timeout": String(NODE_TIMEOUT_MS),
      "cluster-allow-replica-migration": "no",
      ...settings,
    });
    return startRedisNode(`cluster-${i}`, own, folder);
  };

  async function served(key: string): Promise<RedisNode | undefined> {
    const slot = slotOf(key);
    const living = nodes.filter((node) => node.process.alive);
    const said = await Promise.race(living.map(async ({ admin }) => ranges(await admin.cluster("SLOTS"))));
    const port = said.find(({ first, last }) => first <= slot && slot <= last)?.port;
    return nodes.find((node) => node.port === port);
  }

  try {
    for (let i = 0; i < 2 * MASTERS; i++) nodes.push(await start(i));
    await makeCluster(nodes);
  } catch (error) {
    await dispose();
    throw error;
  }
  return {
    url: `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}`,
    masters: MASTERS,
    nodes,
    async masterOf(key) {
      const node = await served(key);
      if (node === undefined) throw new Error("nobody serves the slot");
      return node;
    },
    async mastersNow() {
      const living = nodes.filter((node) => node.process.alive);
      const serve = await Promise.all(
        living.map(async (node) => (await infoOf(node.admin, "role")) === "master" && (await stateOf(node)) === "ok"),
      );
      return living.filter((_, i) => serve[i]);
    },
    whenReplaced: (key, former) =>
      settled(async () => {
        const now = await served(key);
        return now !== undefined && now !== former && (await stateOf(now)) === "ok";
      }),
    whenWhole: () => whole(nodes),
    dispose,
  };
}

/**
 * Starts a Cluster of a single master, which has met no other node and so does not know its own
 * address. The master listens at 127.0.0.2, too.
 */
export async function startLoneMaster(name: string, folder: string): Promise<RedisNode> {
  const bus = String(await freePort());
  const own = { "cluster-enabled": "yes", "cluster-config-file": `${name}.conf`, "cluster-port": bus };
  const node = await startRedisNode(name, () => ({ ...own, bind: "127.0.0.1 127.0.0.2" }), folder);
  await node.admin.call("CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 1);
  await settled(async () => (await stateOf(node)) === "ok");
  return node;
}

/** Makes a Cluster of new nodes: the first nodes become masters, the rest their replicas. */
async function makeCluster(nodes: readonly RedisNode[]): Promise<void> {
  const [first] = nodes;
  if (first === undefined) return;
  for (const [i, { admin }] of nodes.entries()) {
    await admin.cluster("SET-CONFIG-EPOCH", i + 1);
    if (i >= MASTERS) continue;
    const [from, to] = [i, i + 1].map((part) => Math.floor((part * SLOTS) / MASTERS));
    await admin.call("CLUSTER", "ADDSLOTSRANGE", from ?? 0, (to ?? 0) - 1);
  }
  for (const { port, admin } of nodes) {
    if (port === first.port) continue;
    const [bus] = (await admin.config("GET", "cluster-port")).slice(1);
    await first.admin.call("CLUSTER", "MEET", "127.0.0.1", port, String(bus));
  }
  await settled(async () => (await Promise.all(nodes.map(knownOf))).every((known) => known === nodes.length));
  for (const [i, { admin }] of nodes.entries()) {
    if (i < MASTERS) continue;
    const master = nodes[i - MASTERS];
    const id = await master?.admin.cluster("MYID");
    // A node that has not yet heard of its master's slots refuses.
    await settled(async () => (await admin.call("CLUSTER", "REPLICATE", String(id))) === "OK");
  }
  await whole(nodes);
}

async function whole(nodes: readonly RedisNode[]): Promise<void> {
  await settled(async () => {
    const all = await Promise.all(
      nodes.map(async (node) => {
        const [state, replicas] = await Promise.all([stateOf(node), onlineReplicas(node)]);
        return { ok: state === "ok", replicas };
      }),
    );
    return all.every(({ ok }) => ok) && all.reduce((sum, { replicas }) => sum + replicas, 0) === MASTERS;
  });
}

async function stateOf({ admin }: RedisNode): Promise<string | undefined> {
  return /cluster_state:(\w+)/.exec(await admin.cluster("INFO"))?.[1];
}

async function knownOf({ admin }: RedisNode): Promise<number> {
  return Number(/cluster_known_nodes:(\d+)/.exec(await admin.cluster("INFO"))?.[1]);
}

function ranges(reply: unknown): { first: number; last: number; port: number }[] {
  return (reply as [number, number, [string, number]][]).map(([first, last, [, port]]) => ({ first, last, port }));
}
