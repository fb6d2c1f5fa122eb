/** This machine's address, as the servers that it connects to see it. */
import { hostname } from "node:os";
import type { Socket } from "node:net";
import { Cluster, Redis } from "./ioredis.js";
import type { RedisClient } from "./connect.js";

/** @returns the name of this machine if the client has no connection over a network now */
export function localAddress(redis: RedisClient): string {
  const server = redis instanceof Cluster ? redis.nodes("all").find(({ status }) => status === "ready") : redis;
  const stream: Partial<Socket> | undefined = server instanceof Redis ? server.stream : undefined;
  return stream?.localAddress?.replace(/^::ffff:/, "") ?? hostname();
}
