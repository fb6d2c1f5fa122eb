/**
 * Requests that come while the only worker is frozen. The answers come after the thaw, in the order
 * in which the requests ran, except within one batch.
 */
import { infoOf } from "../../support/brokers/redis-node.js";
import { queued } from "../../support/queued.js";
import { until } from "../../support/until.js";
import type { RunningFleet } from "../../support/fleet/use-fleet.js";
import { ask, type Said } from "../ask.js";

export const TENANT_HEADER = "x-tenant";

export interface Asked {
  /** The test judges the order by this name, which the tenant does not see. */
  readonly name: string;
  readonly tenant?: string;
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Another request than one to `echo-int32`. */
  readonly other?: { readonly path: string; readonly body: object };
}

export class Backlog {
  /** The names of the requests that had an answer of 200, in that order. */
  readonly answered: string[] = [];
  readonly #served: RunningFleet;
  readonly #said: Promise<Said>[] = [];

  constructor(served: RunningFleet) {
    this.#served = served;
  }

  /** Lets no request run from now on. */
  async freeze(): Promise<void> {
    for (const worker of this.#served.fleet.workers) worker.freeze();
    // Waits until Redis has no open read of a frozen worker, because Redis would hand the next
    // entries to that read.
    const redis = this.#served.fleet.redis.connect();
    await until(async () => (await infoOf(redis, "blocked_clients")) === "0", 60_000);
    redis.disconnect();
  }

  /** Sends these requests, and resolves when all of them lie in the queue. */
  async wait(requests: readonly Asked[]): Promise<void> {
    const redis = this.#served.fleet.redis.connect();
    const before = await queued(redis);
    for (const one of requests) void this.ask(one);
    await until(async () => (await queued(redis)) === before + requests.length, 60_000);
    redis.disconnect();
  }

  /** @returns the answer to one request */
  ask({ name, tenant, parameters = {}, headers: more = {}, other }: Asked): Promise<Said> {
    const headers = tenant === undefined ? more : { [TENANT_HEADER]: tenant, ...more };
    const echoed = { parameters, inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }] };
    const { path, body } = other ?? { path: "/v2/models/echo-int32/infer", body: echoed };
    const said = ask(`${this.#served.url}${path}`, body, { headers, patienceMs: 120_000 });
    const noted = said.then((answer) => {
      if (answer.status === 200) this.answered.push(name);
      return answer;
    });
    this.#said.push(noted);
    return noted;
  }

  /** Thaws the workers. @returns all answers */
  async run(): Promise<Said[]> {
    for (const worker of this.#served.fleet.workers) worker.thaw();
    return Promise.all(this.#said);
  }
}

/** The configuration of the model in these tests, which runs one request at a time. */
export function echo(batching: string): Record<string, string> {
  return {
    "echo-int32": `
      name: "echo-int32"
      backend: "onnxruntime"
      max_batch_size: 1
      input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ -1 ] } ]
      output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ -1 ] } ]
      dynamic_batching { ${batching} }`,
  };
}

/**
 * The most requests in the ready stream of the only bucket, which leave it in the order of their
 * arrival.
 */
export const READY = 9;

export const many = (count: number, asked: (i: number) => Asked): Asked[] =>
  Array.from({ length: count }, (_, i) => asked(i));
