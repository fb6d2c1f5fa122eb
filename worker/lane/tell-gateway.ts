/**
 * Tells a gateway of a request that ended outside a worker. Without this note the gateway would
 * find the outcome late, because no worker replies.
 */
import { requestName, type RequestAddress } from "#shared/queue/address.js";
import { readRecord } from "#shared/queue/pieces/outcome.js";
import { noteUnpublished } from "#shared/queue/work/streams/note-unpublished.js";
import type { RedisClient } from "#shared/redis/connect.js";

export async function tellGateway(redis: RedisClient, address: RequestAddress): Promise<void> {
  const gateway = (await readRecord(redis, address))?.by;
  if (gateway !== undefined) await noteUnpublished(redis, gateway, [requestName(address)]);
}
