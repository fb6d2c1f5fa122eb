/**
 * How a Redis Cluster client handles lost masters: it sends nothing twice, drops a node that falls
 * silent, and asks again which master serves which slot.
 */
import type { Cluster, ClusterOptions, Redis } from "ioredis";
import type { Logger } from "pino";
import type { RedisPlace } from "../broker-url.js";
import { useAskedHosts } from "./asked-host.js";
import { tlsOf } from "./tls.js";

type ClusterPlace = Extract<RedisPlace, { readonly kind: "cluster" }>;

/** How long to wait for a node's answer about the slots. */
const ASK_TIMEOUT_MS = 1_000;
/** The shortest interval between two questions about the slots after failures. */
const ASK_EVERY_MS = 250;

/** The options that `connect.ts` gives every connection. */
interface NodeOptions {
  readonly enableOfflineQueue: boolean;
  readonly retryStrategy: (times: number) => number;
  readonly commandTimeout: number;
}

/** @param node the options of the connection to each node */
export function clusterOptions<Options extends NodeOptions>({ username, password, tls }: ClusterPlace, node: Options) {
  // Nodes get no retry strategy: the client does not reconnect to a lost node, but uses the slots'
  // new masters.
  const { enableOfflineQueue, retryStrategy, ...common } = node;
  return {
    enableOfflineQueue,
    clusterRetryStrategy: retryStrategy,
    slotsRefreshTimeout: ASK_TIMEOUT_MS,
    // By default the client sends a command again after this time if the connection broke, although
    // the command may have run; 0 turns that off. The client still repeats refused commands (MOVED,
    // ASK, TRYAGAIN), because they have not run.
    retryDelayOnFailover: 0,
    // Off, because callers wait for a Cluster that is down, each with its own limit.
    retryDelayOnClusterDown: 0,
    // Keeps host names: each connect resolves the name, and TLS checks the certificate against the
    // name.
    dnsLookup: (host, found) => found(null, host),
    redisOptions: {
      ...common,
      // Drops a node that does not answer a command in time.
      socketTimeout: node.commandTimeout,
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      ...tlsOf(tls),
    },
  } satisfies ClusterOptions;
}

/** Connects to masters before the first command, and logs the loss and return of nodes. */
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
    // Before `ready`, the client asks a node for the state of the Cluster. That works with a node
    // without a connection, and fails while a connection opens.
    if (cluster.status === "ready" && readOnly !== true) connect(node);
  });
  cluster.on("-node", () => refresh(cluster));
}

/**
 * ioredis opens a connection with its first command, and refuses further commands until the
 * connection is open.
 */
function connect(node: Redis): void {
  // The node also emits a failure as an event.
  if (node.status === "wait") node.connect().catch(() => undefined);
}

/** Resolves after each connection to a master has opened or failed, or when `signal` aborts. */
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

/** Asks which master serves which slot, if the error may mean a change. */
export function slotsMayHaveMoved(cluster: Cluster, error: unknown): void {
  if (!(error instanceof Error)) return;
  if (error.name !== "ReplyError" || /^(MOVED|ASK|CLUSTERDOWN|READONLY)/.test(error.message)) refresh(cluster);
}

/** Resolves after a recent answer about the slots, or if no node answers now. */
export async function slotsKnown(cluster: Cluster): Promise<void> {
  const now = performance.now();
  if (cluster.status !== "ready" || now - (askedAt.get(cluster) ?? -Infinity) < ASK_EVERY_MS) return;
  askedAt.set(cluster, now);
  await new Promise<void>((resolve) => cluster.refreshSlotsCache(() => resolve()));
}

/** The time of each client's last question after a failure, on `performance.now()`'s clock. */
const askedAt = new WeakMap<Cluster, number>();

/**
 * Starts a question, unless the last question is recent: each takes a connection of its own, and
 * while a master is gone every call fails. A later failure asks again.
 */
function refresh(cluster: Cluster): void {
  void slotsKnown(cluster);
}
