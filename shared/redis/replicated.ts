/**
 * Calls that count as done once a replica has what they wrote: an asynchronous failover would
 * otherwise lose writes that were acknowledged. This narrows the loss to the failover of a primary
 * and its confirming replica at once; it is no consensus.
 */
import { masterFor, type RedisClient } from "./connect.js";
import { sendTogether, type Call, type Result } from "./transaction.js";

/**
 * The longest wait for a replica. It holds up all that follows on the connection, and Redis refuses
 * writes by itself (NOREPLICAS) once its replicas have been silent for `min-replicas-max-lag`.
 */
const WAIT_MS = 100;

/** No replica has confirmed a call in time: it may have run, and what it wrote may be lost. */
export class UnconfirmedError extends Error {
  override readonly name = "UnconfirmedError";

  constructor() {
    super(`no replica has confirmed the call within ${WAIT_MS} ms: whether it lasts is unknown`);
  }
}

/**
 * Calls, and waits for a replica behind it on the same connection. WAIT counts all that the server
 * had written when the call ended, whoever wrote it, so a repeated call that finds its work done
 * waits for that work, too.
 * @param key one that the calls name
 * @returns one result for each call
 * @throws the error of a call, or UnconfirmedError where no replica has confirmed in time
 */
export async function untilReplicated(redis: RedisClient, key: string, calls: readonly Call[]): Promise<Result[]> {
  const results = await sendTogether(redis, key, [...calls, ["WAIT", 1, WAIT_MS]]);
  const error = results.find(([error]) => error !== null)?.[0];
  if (error !== undefined && error !== null) throw error;
  const waited = results.pop();
  if (waited?.[1] === 0) throw new UnconfirmedError();
  return results;
}

/**
 * Reads what a client is told of. Somebody may have written it a moment ago and still wait for a
 * replica; in the mode `replicated` the reader waits, too, since what a client has been told must
 * not be lost.
 * @param call names the key
 * @returns the reply, with Buffers for strings
 * @throws UnconfirmedError
 */
export function readLasting(redis: RedisClient, key: string, call: Call): Promise<unknown> {
  if (redis.durability === "replicated") return readWithOthers(redis, key, call);
  const [command, ...args] = call;
  return redis.callBuffer(command, args);
}

interface Read {
  readonly key: string;
  readonly call: Call;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Reads that wait for a connection, by its client. It is present while some are under way. */
const readsOf = new WeakMap<object, Read[]>();
/** What one WAIT is behind at most. */
const READS_AT_ONCE = 256;

/**
 * All reads of a connection that come while one waits for a replica share the next WAIT: where
 * there is no replica each holds up the connection, and with it all else that the process asks.
 */
function readWithOthers(redis: RedisClient, key: string, call: Call): Promise<unknown> {
  const server = masterFor(redis, key);
  if (server === undefined) return Promise.reject(new Error("no master is known for the key"));
  return new Promise((resolve, reject) => {
    const read = { key, call, resolve, reject };
    const others = readsOf.get(server);
    if (others !== undefined) return void others.push(read);
    const reads = [read];
    readsOf.set(server, reads);
    void readAll(redis, reads, () => readsOf.delete(server));
  });
}

/**
 * Never throws.
 * @param end is called in the same turn in which no read is left
 */
async function readAll(redis: RedisClient, reads: Read[], end: () => void): Promise<void> {
  // The others of this turn of the event loop are read with the first one.
  await Promise.resolve();
  for (let [first] = reads; first !== undefined; [first] = reads) {
    const some = reads.splice(0, READS_AT_ONCE);
    try {
      const calls = some.map(({ call }) => call);
      const results = await sendTogether(redis, first.key, [...calls, ["WAIT", 1, WAIT_MS]]);
      const [waitError, replicas] = results.at(-1) ?? [null, 0];
      for (const [i, { resolve, reject }] of some.entries()) {
        const [error, reply] = results[i] ?? [null];
        const failed = error ?? waitError ?? (replicas === 0 ? new UnconfirmedError() : null);
        if (failed === null) resolve(reply);
        else reject(failed);
      }
    } catch (error) {
      for (const { reject } of some) reject(error);
    }
  }
  end();
}
