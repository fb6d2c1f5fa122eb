/**
 * Who has a connection to Redis now, by the names that clients give themselves. The kernel closes the sockets of a process that ends, however it ends, so Redis
 * knows of its death at once.
 */
import type { Logger } from "pino";
import { isTransient } from "../retry.js";
import type { RedisClient } from "./connect.js";
import { isReplyError } from "./script.js";

/** Asked by several lanes at a time, Redis is asked once. */
const FRESH_MS = 50;

export class Connections {
  readonly #redis: RedisClient;
  readonly #log: Logger;
  #upSince = Infinity;
  /** Neither lost nor refused a connection so far. */
  #unbroken = true;
  #refused = false;
  #asked: { readonly at: number; readonly names: Promise<ReadonlySet<string> | undefined> } | undefined;

  constructor(redis: RedisClient, log: Logger) {
    this.#redis = redis;
    this.#log = log;
    const up = () => (this.#upSince = this.#unbroken ? -Infinity : performance.now());
    if (redis.status === "ready") up();
    redis.on("ready", up);
    redis.on("close", () => {
      this.#unbroken = false;
      this.#upSince = Infinity;
    });
  }

  /** How long our own link has been up without a break, in ms. Infinity for one that came up at the first try: nothing tells of an outage that others may not be back from. */
  upFor(now: number): number {
    return Math.max(0, now - this.#upSince);
  }

  /** @returns undefined where the server tells nobody: managed services forbid it, and so may access rules. @throws what a lost link throws */
  names(): Promise<ReadonlySet<string> | undefined> {
    const now = performance.now();
    if (this.#asked === undefined || now - this.#asked.at > FRESH_MS) this.#asked = { at: now, names: this.#ask() };
    return this.#asked.names;
  }

  async #ask(): Promise<ReadonlySet<string> | undefined> {
    if (this.#refused) return undefined;
    try {
      return namesIn(await this.#redis.client("LIST"));
    } catch (error) {
      if (!isReplyError(error, "") || isTransient(error)) throw error;
      this.#refused = true;
      this.#log.info(
        { error: String(error) },
        "redis does not tell who is connected: dead workers are noticed by their leases alone",
      );
      return undefined;
    }
  }
}

/** @param clients a line per connection, as CLIENT LIST prints them. */
export function namesIn(clients: unknown): ReadonlySet<string> {
  return new Set(Array.from(String(clients).matchAll(/ name=(\S+)/g), ([, name = ""]) => name));
}
