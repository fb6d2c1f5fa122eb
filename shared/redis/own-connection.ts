/**
 * Which connection of which server is ours, and whether those of other processes are still there.
 * The kernel closes the sockets of a process however it ends, so Redis knows of its death at once.
 */
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { isTransient } from "../retry.js";
import { realWorld } from "../world.js";
import { followServer, type RedisClient } from "./connect.js";
import { isReplyError } from "./script.js";

/**
 * A connection as processes tell each other: `<run id of the server> <id of the client there>`. A
 * server counts its clients from 1 at each start, so the id alone means nothing after a failover.
 */
export type ConnectionName = string;

export class OwnConnection {
  readonly #log: Logger;
  /** The server to which the connection is; undefined while it is lost. */
  #server: Redis | undefined;
  #name: ConnectionName | undefined;
  #upSince = Infinity;
  /** Whether our connection came up at the first try and has never been lost. */
  #unbroken = true;
  #refused = false;

  /**
   * @param key the connection is that of commands with this key: each master of a Cluster has
   * another one
   * @param onChange is called whenever the connection is a new one and its name is known
   */
  constructor(redis: RedisClient, key: string, log: Logger, onChange: () => void, world = realWorld) {
    this.#log = log;
    followServer(redis, key, {
      up: (server) => {
        this.#server = server;
        this.#upSince = this.#unbroken ? -Infinity : world.now();
        this.#identify(server).then(
          () => onChange(),
          // The link is lost again, and the next connection is asked anew.
          (error: unknown) => this.#log.debug({ error: String(error) }, "the connection's name is not known"),
        );
      },
      down: () => {
        this.#server = undefined;
        this.#unbroken = false;
        this.#upSince = Infinity;
        this.#name = undefined;
      },
    });
  }

  /** Undefined while it is not known, or for good where the server does not tell. */
  get name(): ConnectionName | undefined {
    return this.#name;
  }

  /**
   * For how long our own connection has been up, in ms. Infinity for one that came up at the first
   * try and was never lost: then nothing tells of an outage from which others may not be back.
   */
  upFor(now: number): number {
    return Math.max(0, now - this.#upSince);
  }

  /**
   * Which of these connections, and of our own, our server has now.
   * @returns undefined where the server refuses to tell: managed services do, and access rules may.
   * @throws the client's error where the link is lost
   */
  async present(others: readonly ConnectionName[]): Promise<ReadonlySet<ConnectionName> | undefined> {
    const [own, connection] = [this.#name, this.#server];
    if (own === undefined || connection === undefined || this.#refused) return undefined;
    const server = serverOf(own);
    const ids = [own, ...others].filter((one) => serverOf(one) === server).map((one) => one.slice(server.length + 1));
    const list = await this.#ask(() => connection.call("CLIENT", "LIST", "ID", ...ids));
    return list === undefined ? undefined : new Set(clientIds(list).map((id) => `${server} ${id}`));
  }

  async #identify(server: Redis): Promise<void> {
    const [id, info] = await Promise.all([
      this.#ask(() => server.client("ID")),
      this.#ask(() => server.info("server")),
    ]);
    const runId = /run_id:(\w+)/.exec(String(info))?.[1];
    if (server !== this.#server) return; // there is another connection by now
    this.#name = id === undefined || runId === undefined ? undefined : `${runId} ${String(id)}`;
  }

  /** @returns undefined where the server refuses */
  async #ask<T>(question: () => Promise<T>): Promise<T | undefined> {
    try {
      return await question();
    } catch (error) {
      if (!isReplyError(error, "") || isTransient(error)) throw error;
      if (!this.#refused) {
        const reason = { error: String(error) };
        this.#log.info(reason, "redis does not tell who is connected: dead workers are noticed by their silence alone");
      }
      this.#refused = true;
      return undefined;
    }
  }
}

/** The run id of the server that a connection is to. */
export function serverOf(connection: ConnectionName): string {
  return connection.slice(0, connection.indexOf(" "));
}

/** @param clients what CLIENT LIST prints, a line per connection */
function clientIds(clients: unknown): string[] {
  return Array.from(String(clients).matchAll(/^id=(\d+) /gm), ([, id = ""]) => id);
}
