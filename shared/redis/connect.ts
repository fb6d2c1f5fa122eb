/**
 * Redis connections that never hang and never resend. After a cut, ioredis would by default repeat
 * the commands whose reply was lost, which runs them twice. Here a command fails instead, and
 * callers retry what is safe to retry. The URL says whether Redis is one server, the primary that
 * Sentinels name, or a Cluster; callers need not know.
 */
import type { EventEmitter } from "node:events";
import { createRequire } from "node:module";
import type * as ioredis from "ioredis";
import type { Logger } from "pino";
import { redisPlace } from "../broker-url.js";
import type { Durability } from "../durability.js";
import { clusterOptions, keepSlotsKnown, mastersConnected, slotsKnown, slotsMayHaveMoved } from "./cluster.js";
import { slotConnector } from "./slot-connector.js";
import { slotOf } from "./slots.js";

/**
 * Required instead of imported: Node scans an imported CommonJS package for the names of its
 * exports, and V8 optimises the scanner meanwhile. For this package that is half of what loading it
 * takes, 100 ms of the processor; for other packages it is little. Joined programs hold the package
 * (infra/bundle.mjs). A worker's supervisor loads it when its worker has died.
 */
const { Redis, Cluster, AbstractConnector } = createRequire(import.meta.url)("ioredis") as typeof ioredis;

/** Where the client of one server and that of a Cluster differ, or inherit. */
type Different = "status" | "options" | "connect" | "duplicate" | "sendCommand" | keyof EventEmitter;

/**
 * What commands are sent to. In a Cluster every command must have its keys in one slot, one without
 * keys goes to any master, and a pipeline must stay on one node (`callGroups` in `slots.ts`). It
 * emits `ready` when commands can be sent, and `close` when none can.
 */
export interface RedisClient
  extends Pick<ioredis.Redis, Exclude<keyof ioredis.Redis & keyof ioredis.Cluster, Different>>, EventEmitter {
  readonly status: ioredis.RedisStatus | ioredis.ClusterStatus;
  /** What the scripts that accept or end work wait for before they count as done. */
  readonly durability?: Durability;
}

/** One slot of a Cluster. */
export interface ReadSlot {
  /** A key that lies in it. */
  readonly key: string;
  /** Knows who serves it, and is asked at every connect. */
  readonly commands: RedisClient;
}

/** A connection for blocking reads: always to one server, in a Cluster to one slot's master. */
export type BlockingReader = ioredis.Redis;

export interface RedisSettings {
  /** As `redisUrlFault` allows it. */
  readonly url: string;
  /** The connection's name in CLIENT LIST. */
  readonly name: string;
  readonly log: Logger;
}

/** The longest wait for the reply to a command that does not block. */
const COMMAND_TIMEOUT_MS = 2_500;

/** The longest pause between two tries to connect. */
export const MOST_RETRY_MS = 250;

const base = {
  protocol: 2, // one reply shape on every server
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  connectTimeout: 2_000,
  // While Redis loads its data, ioredis waits for as long as Redis estimates, up to 10 s. Ask
  // sooner.
  maxLoadingRetryTime: 100,
  // A silent peer never confirms a close, and ioredis reconnects only after it.
  disconnectTimeout: 100,
  // A primary that became a replica refuses writes for ever, and the address may lead to the new
  // primary by now.
  reconnectOnError: reconnectOn("READONLY"),
  retryStrategy: retryDelay,
} as const;

/** Reconnects at an error of one of these codes, and does not resend the command. */
function reconnectOn(...codes: readonly string[]) {
  return ({ message }: Error): 1 | false => (codes.some((code) => message.startsWith(code)) ? 1 : false);
}

function retryDelay(times: number): number {
  return Math.min(25 * 2 ** Math.min(times, 5), MOST_RETRY_MS);
}

/**
 * Opens what short commands are sent to.
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
      ? new Redis(place.url, options)
      : // A frozen primary must not hold up the handshake: the Sentinels may name another one soon.
        new Redis({ ...options, ...sentinelOptions(place), socketTimeout: COMMAND_TIMEOUT_MS });
  watch(redis, name, log);
  return Object.assign(redis, { durability });
}

/**
 * Opens a connection for blocking reads alone: on a shared one every other command would wait for
 * the block to end.
 * @param slot the only slot that will be read, where Redis is a Cluster
 * @throws TypeError for a URL in which `redisUrlFault` finds a fault, and for a Cluster without a
 * slot
 */
export function connectBlockingReader({ url, name, log }: RedisSettings, slot?: ReadSlot): BlockingReader {
  const place = redisPlace(url);
  const options = { ...base, connectionName: name };
  let redis: BlockingReader;
  if (place.kind === "server") redis = new Redis(place.url, options);
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
      tls: place.tls,
      AbstractConnector,
      disconnectTimeoutMs: base.disconnectTimeout,
    });
    // MOVED says that another node serves the slot by now.
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
 * How long a connection of BullMQ may wait for an answer. Its blocking reads wait for less, and a
 * frozen server would else be waited for without end.
 */
const QUEUE_TIMEOUT_MS = 15_000;

/**
 * Opens a connection as BullMQ wants it, against what this file says of all others: commands wait
 * while Redis is away, and those whose answer was lost are sent again. BullMQ's scripts allow it.
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
    place.kind === "server" ? new Redis(place.url, options) : new Redis({ ...options, ...sentinelOptions(place) });
  watch(redis, name, log);
  return redis;
}

type Place<Kind> = Extract<ReturnType<typeof redisPlace>, { readonly kind: Kind }>;

function credentials({ username, password, tls }: Place<"sentinel" | "cluster">) {
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls: {} }),
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
    ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
  };
}

/**
 * Resolves once commands can be sent.
 * @throws the signal's reason when it aborts first
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
 * Replaces a connection whose peer stopped answering: only a new socket can tell a slow Redis from
 * a dead link. A Cluster's client replaces those of its connections that fall silent by itself, and
 * is told here to ask who serves which slot now.
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
 * The server to which commands with this key go: the only one, or in a Cluster the master that
 * serves the key's slot, as far as the client knows.
 * @returns undefined while the client knows of none
 */
export function masterFor(redis: RedisClient, key: string): ioredis.Redis | undefined {
  if (!(redis instanceof Cluster)) return mastersOf(redis)[0];
  // While the client looks for the Cluster it asks one of its nodes, and must find none of them
  // busy with being connected to.
  if (redis.status !== "ready") return undefined;
  const address = redis.slots[slotOf(key)]?.[0];
  return redis.nodes("master").find(({ options: { host, port } }) => `${host}:${port}` === address);
}

/** Who is told of the connection to one server. */
export interface LinkListener {
  up(server: ioredis.Redis): void;
  down(): void;
}

/**
 * Tells when commands with this key have a connection, and when they lose it. In a Cluster the next
 * one may be to another server.
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
  // A Cluster's client says `refresh` after each look at who serves which slot.
  if (redis.isCluster) redis.on("+node", watchServer).on("-node", look).on("refresh", look).on("ready", look);
  look();
}

/**
 * Whether some server can be reached, although another one cannot. It is false where there is only
 * one.
 */
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
