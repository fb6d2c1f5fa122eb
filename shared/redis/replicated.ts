/**
 * Calls that count as done once a replica has what they wrote: an asynchronous failover would
 * otherwise lose writes that were acknowledged. This narrows the loss to the failover of a primary
 * and its confirming replica at once; it is no consensus.
 */
import type { RedisClient } from "./connect.js";
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
 * Reads fields of a hash that a client is told of. Somebody may have written them a moment ago and
 * still wait for a replica; in the mode `replicated` the reader waits, too, since what a client has
 * been told must not be lost.
 * @throws UnconfirmedError
 */
export async function readLasting(
  redis: RedisClient,
  key: string,
  fields: readonly string[],
): Promise<(Buffer | null)[]> {
  if (redis.durability !== "replicated") return redis.hmgetBuffer(key, ...fields);
  const [result] = await untilReplicated(redis, key, [["HMGET", key, ...fields]]);
  return result?.[1] as (Buffer | null)[];
}
