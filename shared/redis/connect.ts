/**
 * Redis connections that never hang and never resend. After a cut, ioredis would by default repeat
 * the commands without a reply, and so run some twice. Here a command fails instead, and callers
 * retry if that is safe. The URL decides whether Redis is one server, the primary that Sentinels
 * name, or a Cluster; callers need not know.
 */
import type { EventEmitter } from "node:events";
import type * as ioredis from "ioredis";
import type { Logger } from "pino";
import { redisPlace } from "../broker-url.js";
import { clientTls, redisTls } from "../tls.js";
import type { Durability } from "../durability.js";
import { AbstractConnector, Cluster, Redis } from "./ioredis.js";
import { clusterOptions, keepSlotsKnown, mastersConnected, slotsKnown, slotsMayHaveMoved } from "./cluster.js";
import { slotConnector } from "./slot-connector.js";
import { slotOf } from "./slots.js";
import { tlsOf } from "./tls.js";

/**
 * Members that differ between a server's client and a Cluster's client, or come from EventEmitter.
 */
type Different = "status" | "options" | "connect" | "duplicate" | "sendCommand" | keyof EventEmitter;

/**
 * A client for commands. In a Cluster the keys of a command must lie in one slot, a command without
 * keys goes to any master, and a pipeline must stay on one node (`callGroups` in `slots.ts`). Emits
 * `ready` when the client can send commands, and `close` when it cannot.
 */
export interface RedisClient
  extends Pick<ioredis.Redis, Exclude<keyof ioredis.Redis & keyof ioredis.Cluster, Different>>, EventEmitter {
  readonly status: ioredis.RedisStatus | ioredis.ClusterStatus;
  /** How durable a write must be before a script that accepts or ends work counts as done. */
  readonly durability?: Durability;
}

/** A slot of a Cluster. */
export interface ReadSlot {
  /** A key in the slot. */
  readonly key: string;
  /** The client that knows the slot's master. Each connect asks this client. */
  readonly commands: RedisClient;
}

/** A connection for blocking reads, always to a single server: in a Cluster, to a slot's master. */
export type BlockingReader = ioredis.Redis;

export interface RedisSettings {
  /** As `redisUrlFault` allows. */
  readonly url: string;
  /** The connection's name in CLIENT LIST. */
  readonly name: string;
  readonly log: Logger;
}

/** The longest wait for the reply to a command that does not block. */
const COMMAND_TIMEOUT_MS = 2_500;

/** The longest pause between two attempts to connect. */
export const MOST_RETRY_MS = 250;

const base = {
  protocol: 2, // the same reply shapes on every server
  // Redis 7.0 does not know the command, and no role may call it.
  disableClientInfo: true,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  connectTimeout: 2_000,
  // While Redis loads its data, ioredis waits as long as Redis estimates, up to 10 s. This asks
  // sooner.
  maxLoadingRetryTime: 100,
  // ioredis reconnects only after a close, which a silent peer never confirms.
  disconnectTimeout: 100,
  // A primary that became a replica refuses writes for ever, and the address may already lead to
  // the new primary.
  reconnectOnError: reconnectOn("READONLY"),
  retryStrategy: retryDelay,
} as const;

/** Reconnects at an error with one of these codes, and does not resend the command. */
function reconnectOn(...codes: readonly string[]) {
  return ({ message }: Error): 1 | false => (codes.some((code) => message.startsWith(code)) ? 1 : false);
}

function retryDelay(times: number): number {
  return Math.min(25 * 2 ** Math.min(times, 5), MOST_RETRY_MS);
}

/**
 * Opens the client for short commands.
 * @throws TypeError for a URL in which `redisUrlFault` finds a fault
 */
export function connectRedis({
  url,
  name,
  log,
  durability = "strict",
}: RedisSettings & { readonly durability?: Durability }): RedisClient {
  const place = redisPlace(url);
  const options = { ...base, connectionName: name, commandTimeout: COMMAND_TIMEOUT_MS };
  if (place.kind === "cluster") {
    const cluster = new Cluster([...place.nodes], clusterOptions(place, options));
    keepSlotsKnown(cluster, name, log);
    return Object.assign(cluster, { durability });
  }
  const redis =
    place.kind === "server"
      ? new Redis(place.url, { ...options, ...tlsOf(place.tls) })
      : // A frozen primary must not delay the handshake: the Sentinels may name another soon.
        new Redis({ ...options, ...sentinelOptions(place), socketTimeout: COMMAND_TIMEOUT_MS });
  watch(redis, name, log);
  return Object.assign(redis, { durability });
}

/**
 * Opens a connection for blocking reads alone. On a shared connection, every other command would
 * wait for the block to end.
 * @param slot the only slot to read, if Redis is a Cluster
 * @throws TypeError for a URL in which `redisUrlFault` finds a fault, and for a Cluster without a
 *   slot
 */
export function connectBlockingReader({ url, name, log }: RedisSettings, slot?: ReadSlot): BlockingReader {
  const place = redisPlace(url);
  const options = { ...base, connectionName: name };
  let redis: BlockingReader;
  if (place.kind === "server") redis = new Redis(place.url, { ...options, ...tlsOf(place.tls) });
  else if (place.kind === "sentinel") redis = new Redis({ ...options, ...sentinelOptions(place) });
  else {
    const commands = slot?.commands;
    if (slot === undefined || !(commands instanceof Cluster)) throw new TypeError("a Cluster is read slot by slot");
    const Connector = slotConnector({
      findMaster: async () => {
        await slotsKnown(commands);
        const { host, port } = masterFor(commands, slot.key)?.options ?? {};
        return host === undefined || port === undefined ? undefined : { host, port };
      },
      ...tlsOf(place.tls),
      AbstractConnector,
      disconnectTimeoutMs: base.disconnectTimeout,
    });
    // MOVED means that another node serves the slot now.
    redis = new Redis({
      ...options,
      ...credentials(place),
      Connector,
      reconnectOnError: reconnectOn("READONLY", "MOVED"),
    });
  }
  watch(redis, name, log);
  return redis;
}

/**
 * The longest wait of a BullMQ connection for an answer. BullMQ's blocking reads wait for less.
 * Without a limit, a frozen server would block a connection for ever.
 */
const QUEUE_TIMEOUT_MS = 15_000;

/**
 * Opens a connection as BullMQ needs it, unlike the other connections of this file: commands wait
 * while Redis is away, and the client resends commands without a reply. BullMQ's scripts allow
 * both.
 * @throws TypeError for a URL in which `redisUrlFault` finds a fault
 */
export function connectForQueue({ url, name, log }: RedisSettings): ioredis.Redis | ioredis.Cluster {
  const place = redisPlace(url);
  const options = {
    ...base,
    connectionName: name,
    maxRetriesPerRequest: null,
    enableOfflineQueue: true,
    autoResendUnfulfilledCommands: true,
    commandTimeout: QUEUE_TIMEOUT_MS,
    socketTimeout: QUEUE_TIMEOUT_MS,
  };
  if (place.kind === "cluster") {
    const cluster = new Cluster([...place.nodes], clusterOptions(place, options));
    keepSlotsKnown(cluster, name, log);
    return cluster;
  }
  const redis =
    place.kind === "server"
      ? new Redis(place.url, { ...options, ...tlsOf(place.tls) })
      : new Redis({ ...options, ...sentinelOptions(place) });
  watch(redis, name, log);
  return redis;
}

type Place<Kind> = Extract<ReturnType<typeof redisPlace>, { readonly kind: Kind }>;

function credentials({ username, password, tls }: Place<"sentinel" | "cluster">) {
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...tlsOf(tls),
  };
}

function sentinelOptions(place: Place<"sentinel">) {
  const { sentinels, sentinelCredentials, name, db, tls } = place;
  return {
    ...credentials(place),
    sentinels: [...sentinels],
    name,
    db,
    sentinelRetryStrategy: retryDelay,
    sentinelCommandTimeout: 1_000,
    ...(sentinelCredentials.username !== undefined && { sentinelUsername: sentinelCredentials.username }),
    ...(sentinelCredentials.password !== undefined && { sentinelPassword: sentinelCredentials.password }),
    ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: clientTls(tls, redisTls) }),
  };
}

/**
 * Resolves once the client can send commands.
 * @throws the signal's reason if the signal aborts first
 */
export async function whenReady(redis: RedisClient, signal: AbortSignal): Promise<void> {
  while (redis.status !== "ready") {
    signal.throwIfAborted();
    await new Promise<void>((resolve) => {
      const done = () => {
        redis.off("ready", done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      redis.once("ready", done);
      signal.addEventListener("abort", done, { once: true });
    });
  }
  if (redis instanceof Cluster) await mastersConnected(redis, signal);
}

/**
 * Replaces a connection whose peer stopped answering, because only a new socket shows whether Redis
 * is slow or the link dead. A Cluster client replaces silent connections by itself, and here asks
 * again which master serves which slot.
 */
export function dropIfSilent(redis: RedisClient, error: unknown): void {
  if (redis instanceof Cluster) slotsMayHaveMoved(redis, error);
  else if (error instanceof Error && error.message === "Command timed out" && redis.status === "ready")
    redis.disconnect(true);
}

/** The server itself, or every known master of a Cluster. */
export function mastersOf(redis: RedisClient): ioredis.Redis[] {
  if (redis instanceof Cluster) return redis.nodes("master");
  return redis instanceof Redis ? [redis] : [];
}

/**
 * The server for commands with this key: the single server, or in a Cluster the master of the key's
 * slot, as far as the client knows.
 * @returns undefined if the client knows no such server
 */
export function masterFor(redis: RedisClient, key: string): ioredis.Redis | undefined {
  if (!(redis instanceof Cluster)) return mastersOf(redis)[0];
  // Before `ready`, the client asks a node for the state of the Cluster. That fails while a
  // connection to the node opens, so no caller may open a connection yet.
  if (redis.status !== "ready") return undefined;
  const address = redis.slots[slotOf(key)]?.[0];
  return redis.nodes("master").find(({ options: { host, port } }) => `${host}:${port}` === address);
}

/** Receives the changes of the connection to a server. */
export interface LinkListener {
  up(server: ioredis.Redis): void;
  down(): void;
}

/**
 * Reports when commands with this key gain and lose their connection. In a Cluster the next
 * connection may lead to another server.
 */
export function followServer(redis: RedisClient, key: string, listener: LinkListener): void {
  let current: ioredis.Redis | undefined;
  const look = () => {
    const server = masterFor(redis, key);
    const ready = server?.status === "ready" ? server : undefined;
    if (ready === current) return;
    if (current !== undefined) listener.down();
    current = ready;
    if (ready !== undefined) listener.up(ready);
  };
  const watchServer = (server: ioredis.Redis) => server.on("ready", look).on("close", look);
  mastersOf(redis).forEach(watchServer);
  // A Cluster client emits `refresh` after each answer about the slots.
  if (redis.isCluster) redis.on("+node", watchServer).on("-node", look).on("refresh", look).on("ready", look);
  look();
}

/** Whether some server is reachable although another is not. False for a single server. */
export function reachesOthers(redis: RedisClient): boolean {
  return redis.isCluster && mastersOf(redis).some(({ status }) => status === "ready");
}

function watch(redis: ioredis.Redis, name: string, log: Logger): void {
  // Several parts of a process listen for reconnections, more than Node expects of an emitter.
  redis.setMaxListeners(0);
  let down = false;
  let sentinels: string | undefined;
  redis.on("sentinelError", (error: Error) => (sentinels = error.message));
  redis.on("error", (error: Error) => {
    if (!down) log.warn({ connection: name, error: error.message, sentinels }, "redis connection lost");
    down = true;
  });
  redis.on("ready", () => {
    if (down) log.info({ connection: name }, "redis connection restored");
    down = false;
    sentinels = undefined;
  });
}
