/**
 * The test as the worker of a request: it appends to the log and publishes on NATS by hand, and so
 * decides which records to lose, double, delay or forge.
 */
import { storeOutcome, type Outcome } from "#shared/contract/outcome.js";
import type { Bus } from "#shared/nats/connect.js";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { logKey, outcomeKey, tokenSubject } from "#shared/queue/keys.js";
import { decodeRequestId, encodeRequestId, type RequestAddress } from "#shared/queue/address.js";
import type { Redis } from "ioredis";
import { talker } from "../../fixtures/generation.js";

/** Connections past the lines that a test cuts. */
export interface WriterConnections {
  readonly redis: Redis;
  readonly bus: Bus;
}

export class Writer {
  readonly address: RequestAddress;
  readonly subject: string;
  readonly #connections: WriterConnections;
  readonly #log: string;
  readonly #outcome: string;

  constructor(connections: WriterConnections, id: string) {
    const address = decodeRequestId(id, DEFAULT_TENANT);
    if (address === undefined) throw new Error(`no request id: ${id}`);
    this.#connections = connections;
    this.address = address;
    this.subject = tokenSubject(address);
    this.#log = logKey(address);
    this.#outcome = outcomeKey(address);
  }

  async append(...records: string[]): Promise<void> {
    await this.#connections.redis.rpush(this.#log, ...records);
  }

  publish(...records: (string | Buffer)[]): void {
    for (const record of records) this.#connections.bus.publish(this.subject, Buffer.from(record));
  }

  /** Appends and publishes. After a final record, gives the outcome, too. */
  async write(...records: string[]): Promise<void> {
    await this.append(...records);
    this.publish(...records);
    if (records.at(-1)?.includes('"final":true') === true) await this.give({ kind: "result", body: Buffer.from("x") });
  }

  async give(outcome: Outcome): Promise<void> {
    const { kind, body } = storeOutcome(outcome);
    await this.#connections.redis.hset(this.#outcome, { kind, body, ended: String(Date.now()) });
  }

  async destroy(...what: ("log" | "outcome")[]): Promise<void> {
    await this.#connections.redis.del(...what.map((one) => (one === "log" ? this.#log : this.#outcome)));
  }

  /** The fields of the request's outcome record. */
  fields(): Promise<Record<string, string>> {
    return this.#connections.redis.hgetall(this.#outcome);
  }
}

/** Makes a request that no gateway of the test has admitted. */
export async function foreignRequest(
  connections: WriterConnections,
  model = talker.name,
): Promise<{ id: string; writer: Writer }> {
  const id = encodeRequestId({ request: `r${requests++}`, bucket: 0, model });
  const writer = new Writer(connections, id);
  const key = outcomeKey(writer.address);
  await connections.redis.hset(key, "digest", "", "at", String(Date.now()), "pin", "1:a");
  return { id, writer };
}

let requests = 0;
