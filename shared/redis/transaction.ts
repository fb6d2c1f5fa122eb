/**
 * Calls that Redis runs as one transaction: all of them in a row, and nobody else's between them.
 * Large values are written in the transaction of the script that refers to them. They do not pass
 * through Lua there, and Redis flushes its append-only file once; outside of one it would flush for
 * every 16 KB that it reads.
 */
import { masterFor, type RedisClient } from "./connect.js";

export type Arg = string | number | Buffer;

/** A command, and its arguments. */
export type Call = readonly [command: string, ...args: Arg[]];

/** What became of one call of several. */
export type Result = readonly [error: Error | null, reply?: unknown];

/**
 * Sends calls one behind the other on one connection. In a Cluster their keys are in one slot, and
 * they go over the connection to the master itself. The Cluster's client would choose a connection
 * for each command of a pipeline while it knows of none: where it refuses the first and takes the
 * second, it never sends that, and from then on gives every reply of that connection to the command
 * before (ioredis 6.0).
 * @param key one that the calls name
 * @returns one result for each; bulk strings are Buffers
 * @throws the client's error where the link is lost
 */
export async function sendTogether(redis: RedisClient, key: string, calls: readonly Call[]): Promise<Result[]> {
  const server = masterFor(redis, key);
  if (server === undefined) throw new Error("no master is known for the key");
  // A master that has no connection yet gets one with the first command.
  const isOpen = server.status === "ready" || server.status === "wait";
  if (redis.isCluster && !isOpen) throw new Error("the connection to the master is closed");
  const pipeline = server.pipeline();
  for (const [command, ...args] of calls) pipeline.callBuffer(command, args);
  const results = await pipeline.exec();
  if (results?.length !== calls.length) throw new TypeError("a pipeline has one result for each call");
  return results;
}

/** The calls that run these as one transaction. */
export function inTransaction(calls: readonly Call[]): Call[] {
  return [["MULTI"], ...calls, ["EXEC"]];
}

/**
 * @param results of what `inTransaction` made
 * @returns the reply to the transaction's last call
 * @throws the error of the call for which the server has refused all of them, or of the first that
 * failed; those before and behind that one have run
 */
export function lastReply(results: readonly Result[]): unknown {
  const refused = results.find(([error]) => error !== null)?.[0];
  if (refused !== undefined && refused !== null) throw refused;
  const replies = results.at(-1)?.[1];
  if (!Array.isArray(replies)) throw new TypeError("EXEC answers with an array");
  for (const reply of replies as unknown[]) if (reply instanceof Error) throw reply;
  return (replies as unknown[]).at(-1);
}
