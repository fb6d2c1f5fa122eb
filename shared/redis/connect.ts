/**
 * Redis connections that never hang and never resend: after a cut, ioredis would by default repeat commands whose reply was lost,
 * which runs them twice (spec/reliability.md F37). Here a command fails instead, and callers retry what is safe to retry.
 */
import { createRequire } from "node:module";
import type * as ioredis from "ioredis";
import type { Logger } from "pino";

/**
 * Not imported: Node looks through an imported package of CommonJS for the names of its exports, and V8 optimises what looks. For this package that
 * is half of what loading it takes, 100 ms of the processor at a worker's start; for the others it is little.
 */
const { Redis } = createRequire(import.meta.url)("ioredis") as typeof ioredis;

export type RedisClient = ioredis.Redis;

export interface RedisSettings {
  readonly url: string;
  readonly name: string;
  readonly log: Logger;
}

/** Longest wait for any non-blocking command. */
const COMMAND_TIMEOUT_MS = 2_500;

/** Longest pause between two tries to connect. */
export const MOST_RETRY_MS = 250;

const base = {
  protocol: 2, // one reply shape on every server
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  connectTimeout: 2_000,
  // While Redis loads its data it estimates how long that takes; ioredis believes it, for up to 10 s. Ask again soon instead.
  maxLoadingRetryTime: 100,
  disconnectTimeout: 100, // a silent peer never confirms a close; until then nothing reconnects
  // A primary that became a replica refuses writes for ever: the address may lead to the new one. Never resent from here.
  reconnectOnError: (error: Error) => (error.message.startsWith("READONLY") ? 1 : false),
  retryStrategy: (times: number) => Math.min(25 * 2 ** Math.min(times, 5), MOST_RETRY_MS),
} as const;

/** A connection for short commands. */
export function connectRedis({ url, name, log }: RedisSettings): RedisClient {
  const redis = new Redis(url, {
    ...base,
    connectionName: name,
    commandTimeout: COMMAND_TIMEOUT_MS,
  });
  watch(redis, name, log);
  return redis;
}

/** A connection for blocking reads alone: a shared one would hold every other command for the whole block. */
export function connectBlockingReader({ url, name, log }: RedisSettings): RedisClient {
  const redis = new Redis(url, { ...base, connectionName: name });
  watch(redis, name, log);
  return redis;
}

/** Resolves once commands can be sent; rejects when `signal` aborts first. */
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
}

/** A connection whose peer stopped answering is replaced: only a new socket can tell a slow Redis from a dead link. */
export function dropIfSilent(redis: RedisClient, error: unknown): void {
  if (error instanceof Error && error.message === "Command timed out" && redis.status === "ready")
    redis.disconnect(true);
}

function watch(redis: RedisClient, name: string, log: Logger): void {
  redis.setMaxListeners(0); // every lane listens for reconnections
  let down = false;
  redis.on("error", (error: Error) => {
    if (!down) log.warn({ connection: name, error: error.message }, "redis connection lost");
    down = true;
  });
  redis.on("ready", () => {
    if (down) log.info({ connection: name }, "redis connection restored");
    down = false;
  });
}
