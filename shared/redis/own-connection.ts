/**
 * Identifies this process's connection, and checks whether the connections of other processes still
 * exist. The kernel closes the sockets of a process after any death, so Redis knows of the death at
 * once.
 */
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { isTransient } from "../retry.js";
import { realWorld } from "../world.js";
import { followServer, type RedisClient } from "./connect.js";
import { isReplyError } from "./script.js";

/**
 * A connection's name among processes: `<run id of the server> <id of the client there>`. A server
 * counts its clients from 1 at each start, so the id alone is ambiguous after a failover.
 */
export type ConnectionName = string;

export class OwnConnection {
  readonly #log: Logger;
  /** The connection's server; undefined while the connection is lost. */
  #server: Redis | undefined;
  #name: ConnectionName | undefined;
  #upSince = Infinity;
  /** Whether the connection came up at the first attempt and has never been lost. */
  #unbroken = true;
  #refused = false;

  /**
   * @param key selects the connection for commands with this key: each master of a Cluster has a
   *   connection of its own
   * @param onChange called after each new connection, once its name is known
   */
  constructor(redis: RedisClient, key: string, log: Logger, onChange: () => void, world = realWorld) {
    this.#log = log;
    followServer(redis, key, {
      up: (server) => {
        this.#server = server;
        this.#upSince = this.#unbroken ? -Infinity : world.now();
        this.#identify(server).then(
          () => onChange(),
          // The connection is lost again. The next connection repeats the question.
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

  /** Undefined while unknown, or for good if the server refuses to say. */
  get name(): ConnectionName | undefined {
    return this.#name;
  }

  /**
   * How long this process's connection has been up, in ms. Infinity if the connection came up at
   * the first attempt and was never lost, because then there was no known outage from which other
   * processes may still return.
   */
  upFor(now: number): number {
    return Math.max(0, now - this.#upSince);
  }

  /**
   * The subset of these connections, and of this process's own, that the server has now.
   * @returns undefined if the server refuses to say: managed services do, and access rules may
   * @throws the client's error if the link is lost
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
    if (server !== this.#server) return; // the connection has changed meanwhile
    this.#name = id === undefined || runId === undefined ? undefined : `${runId} ${String(id)}`;
  }

  /** @returns undefined if the server refuses */
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

/** The run id of a connection's server. */
export function serverOf(connection: ConnectionName): string {
  return connection.slice(0, connection.indexOf(" "));
}

/** @param clients the output of CLIENT LIST, a line per connection */
function clientIds(clients: unknown): string[] {
  return Array.from(String(clients).matchAll(/^id=(\d+) /gm), ([, id = ""]) => id);
}
