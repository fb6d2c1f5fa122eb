/**
 * Calls that Redis runs as a transaction: in a row, without other clients' calls in between. Baton
 * writes large values in the transaction of the script that refers to them. The values then do not
 * pass through Lua, and Redis flushes its append-only file once. Outside a transaction Redis would
 * flush for every 16 KB that it reads.
 */
import { masterFor, mastersOf, type RedisClient } from "./connect.js";
import { sendCalls } from "./send-calls.js";

export type Arg = string | number | Buffer;

/** A command and its arguments. */
export type Call = readonly [command: string, ...args: Arg[]];

/** The result of one of several calls. */
export type Result = readonly [error: Error | null, reply?: unknown];

/**
 * Sends calls in a row on one connection. In a Cluster the keys lie in one slot, and the calls use
 * the connection to the master itself. The Cluster client of ioredis 6.0 chooses a connection for
 * each command of a pipeline while it knows of none. If it refuses the first command and accepts
 * the second, it never sends the second. From then on it gives every reply on that connection to
 * the command before.
 * @param key one that the calls name
 * @returns a result for each call; bulk strings are Buffers
 * @throws the client's error if the link is lost
 */
export async function sendTogether(redis: RedisClient, key: string, calls: readonly Call[]): Promise<Result[]> {
  const server = masterFor(redis, key);
  if (server === undefined) throw new Error("no master is known for the key");
  // The first command opens the connection to a master in the state `wait`.
  const isOpen = server.status === "ready" || server.status === "wait";
  if (redis.isCluster && !isOpen) throw new Error("the connection to the master is closed");
  const sent = sendCalls(server, calls);
  if (sent !== undefined) return sent;
  const pipeline = server.pipeline();
  for (const [command, ...args] of calls) pipeline.callBuffer(command, args);
  const results = await pipeline.exec();
  if (results?.length !== calls.length) throw new TypeError("a pipeline has one result for each call");
  return results;
}

/**
 * Sends a call by itself. In a Cluster the client follows a slot that has moved.
 * @returns the reply, with Buffers for strings
 * @throws the error of the call, or the client's error if the link is lost
 */
export async function sendCall(redis: RedisClient, call: Call): Promise<unknown> {
  const [server] = redis.isCluster ? [] : mastersOf(redis);
  const sent = server && sendCalls(server, [call]);
  const [command, ...args] = call;
  if (sent === undefined) return redis.callBuffer(command, args);
  return onlyReply(await sent);
}

/**
 * @param results of one call
 * @throws the error of the call
 */
export function onlyReply([result]: readonly Result[]): unknown {
  if (result === undefined) throw new TypeError("a call has a result");
  const [error, reply] = result;
  if (error !== null) throw error;
  return reply;
}

/** The calls that run these calls as a transaction. */
export function inTransaction(calls: readonly Call[]): Call[] {
  return [["MULTI"], ...calls, ["EXEC"]];
}

/**
 * @param results of the calls from `inTransaction`
 * @returns the reply to the transaction's last call
 * @throws the error of the call for which the server has refused the whole transaction, or of the
 *   first call that failed; in the second case all other calls have run
 */
export function lastReply(results: readonly Result[]): unknown {
  const refused = results.find(([error]) => error !== null)?.[0];
  if (refused !== undefined && refused !== null) throw refused;
  const replies = results.at(-1)?.[1];
  if (!Array.isArray(replies)) throw new TypeError("EXEC answers with an array");
  for (const reply of replies as unknown[]) if (reply instanceof Error) throw reply;
  return (replies as unknown[]).at(-1);
}
