/**
 * What a client of a Redis Cluster does when masters fail: it sends nothing twice, drops a node
 * that falls silent, and asks anew who serves which slot.
 */
import type { Cluster, ClusterOptions, Redis } from "ioredis";
import type { Logger } from "pino";
import type { RedisPlace } from "../broker-url.js";
import { useAskedHosts } from "./asked-host.js";

type ClusterPlace = Extract<RedisPlace, { readonly kind: "cluster" }>;

/** How long one node may take to tell who serves which slot. */
const ASK_TIMEOUT_MS = 1_000;
/** After a failure it is asked for at most this often. */
const ASK_EVERY_MS = 250;

/** What `connect.ts` gives every connection. */
interface NodeOptions {
  readonly enableOfflineQueue: boolean;
  readonly retryStrategy: (times: number) => number;
  readonly commandTimeout: number;
}

/** @param node the options of the connection to each node */
export function clusterOptions<Options extends NodeOptions>({ username, password, tls }: ClusterPlace, node: Options) {
  // The client does not try again to reach a node that is gone; the slots' new masters are asked.
  const { enableOfflineQueue, retryStrategy, ...common } = node;
  return {
    enableOfflineQueue,
    clusterRetryStrategy: retryStrategy,
    slotsRefreshTimeout: ASK_TIMEOUT_MS,
    // By default a command whose connection was lost is sent again after this time, although it may
    // have run. A command that was refused (MOVED, ASK, TRYAGAIN) has not run and is sent again.
    retryDelayOnFailover: 0,
    // The callers wait for a Cluster that is down, and know for how long.
    retryDelayOnClusterDown: 0,
    // Names are resolved at every connect, and a certificate is checked against the name.
    dnsLookup: (host, found) => found(null, host),
    redisOptions: {
      ...common,
      // A node on which a command was sent and nothing came back is dropped.
      socketTimeout: node.commandTimeout,
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      ...(tls && { tls: {} }),
    },
  } satisfies ClusterOptions;
}

/** Connects to masters ahead of the first command, and logs the loss and return of nodes. */
export function keepSlotsKnown(cluster: Cluster, name: string, log: Logger): void {
  cluster.setMaxListeners(0);
  useAskedHosts(cluster);
  const down = new Set<string>();
  const lost = (node: string, error: Error) => {
    if (!down.has(node)) log.warn({ connection: name, node, error: error.message }, "redis connection lost");
    down.add(node);
  };
  const restored = (node: string) => {
    if (down.delete(node)) log.info({ connection: name, node }, "redis connection restored");
  };
  cluster.on("error", (error: Error) => lost("all", error));
  cluster.on("reconnecting", () => lost("all", new Error("no node can be reached that names who serves the slots")));
  cluster.on("ready", () => {
    restored("all");
    cluster.nodes("master").forEach(connect);
  });
  cluster.on("node error", (error: Error, node: string) => lost(node, error));
  cluster.on("+node", (node: Redis) => {
    const { host, port, readOnly } = node.options;
    node.on("ready", () => restored(`${host}:${port}`));
    // Before it is ready, the client asks one of its nodes for the state of the Cluster. That works
    // with a node to which no connection was begun, and fails while one is being opened.
    if (cluster.status === "ready" && readOnly !== true) connect(node);
  });
  cluster.on("-node", () => refresh(cluster));
}

/**
 * ioredis opens a connection with its first command, and refuses the commands that follow until it
 * is open.
 */
function connect(node: Redis): void {
  // A failure is emitted by the node, too.
  if (node.status === "wait") node.connect().catch(() => undefined);
}

/** Resolves when each connection to a master is open or has failed, or when `signal` aborts. */
export async function mastersConnected(cluster: Cluster, signal: AbortSignal): Promise<void> {
  const opening = cluster.nodes("master").filter(({ status }) => status === "connecting" || status === "connect");
  await Promise.all(opening.map((node) => opened(node, signal)));
}

function opened(node: Redis, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      node.off("ready", done).off("end", done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    node.once("ready", done).once("end", done);
    signal.addEventListener("abort", done, { once: true });
  });
}

/** Asks who serves which slot if the error may mean that this has changed. */
export function slotsMayHaveMoved(cluster: Cluster, error: unknown): void {
  if (!(error instanceof Error)) return;
  if (error.name !== "ReplyError" || /^(MOVED|ASK|CLUSTERDOWN|READONLY)/.test(error.message)) refresh(cluster);
}

/** Resolves when it was asked lately who serves which slot, or nobody answers now. */
export async function slotsKnown(cluster: Cluster): Promise<void> {
  const now = performance.now();
  if (cluster.status !== "ready" || now - (askedAt.get(cluster) ?? -Infinity) < ASK_EVERY_MS) return;
  askedAt.set(cluster, now);
  await new Promise<void>((resolve) => cluster.refreshSlotsCache(() => resolve()));
}

/** When each client last asked because of a failure, on `performance.now()`'s clock. */
const askedAt = new WeakMap<Cluster, number>();

/**
 * Each question takes a connection of its own, and while a master is gone every call fails. A call
 * that fails later asks again.
 */
function refresh(cluster: Cluster): void {
  void slotsKnown(cluster);
}
