/**
 * Calls that count as done after a replica has their writes, because an asynchronous failover would
 * otherwise lose acknowledged writes. Writes are then lost only if the primary and its confirming
 * replica fail at once. This is no consensus.
 */
import { masterFor, type RedisClient } from "./connect.js";
import { sendTogether, type Call, type Result } from "./transaction.js";

/**
 * The longest wait for a replica. The wait delays everything after it on the connection. After its
 * replicas have been silent for `min-replicas-max-lag`, Redis itself refuses writes (NOREPLICAS).
 */
const WAIT_MS = 100;

/** No replica has confirmed a call in time: the call may have run, and its writes may be lost. */
export class UnconfirmedError extends Error {
  override readonly name = "UnconfirmedError";

  constructor() {
    super(`no replica has confirmed the call within ${WAIT_MS} ms: whether it lasts is unknown`);
  }
}

/**
 * Sends calls, and then WAIT on the same connection. WAIT covers all earlier writes of the server,
 * from any client. So a repeated call that finds its work done waits for that work, too.
 * @param key one that the calls name
 * @returns a result for each call
 * @throws the error of a call, or UnconfirmedError if no replica has confirmed in time
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
 * Reads a value that a client will receive. Another process may have written the value a moment ago
 * and still wait for a replica. In the mode `replicated` the reader waits, too, because Baton must
 * not lose a value that a client has received.
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

/** Reads that wait for a connection, by its client. An entry exists while reads are under way. */
const readsOf = new WeakMap<object, Read[]>();
/** The most reads before a WAIT. */
const READS_AT_ONCE = 256;

/**
 * Reads that arrive while another read waits for a replica share the next WAIT. Without a replica
 * each WAIT blocks the connection, and so all other commands of the process.
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
 * @param end called in the same turn in which no read is left
 */
async function readAll(redis: RedisClient, reads: Read[], end: () => void): Promise<void> {
  // Includes the other reads of this turn of the event loop.
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
