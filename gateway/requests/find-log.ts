/**
 * Finds the log of a request by its public id, even if another gateway admitted the request. An id
 * names a request only within its tenant.
 */
import { decodeRequestId, type RequestAddress } from "#shared/queue/address.js";
import { fixedError, type InferenceError } from "#shared/errors.js";
import { logKey } from "#shared/queue/keys.js";
import { readRecord } from "#shared/queue/pieces/outcome.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { askRedis } from "../admission/ask-redis.js";
import type { Relay } from "../stream/relay.js";
import { StreamLog } from "../stream/stream-log.js";

export interface LogPlace {
  readonly redis: RedisClient;
  readonly relay: Relay;
}

export function unknownRequest(): InferenceError {
  return fixedError("unknown_request", "usual");
}

/** @throws InferenceError `unknown_request` if `id` is no id */
export function addressOf(tenant: string, id: string): RequestAddress {
  const address = decodeRequestId(id, tenant);
  if (address === undefined) throw unknownRequest();
  return address;
}

/**
 * Gives the log of a generator's request, without a check that the log still exists.
 * @throws InferenceError `not_a_stream` or `unavailable`
 */
export async function findLog(place: LogPlace, address: RequestAddress): Promise<StreamLog> {
  const { redis, relay } = place;
  if (relay.models.hasStreams(address.model) !== true) {
    const mayBe = async () => (await isStream(place, address)) || (await readRecord(redis, address)) === undefined;
    if (!(await askRedis(mayBe))) throw fixedError("not_a_stream", "usual");
  }
  return new StreamLog(relay, address);
}

/**
 * Whether the request is a generator's. If the fleet no longer knows the model, Redis decides: only
 * a stream has readers or a log.
 * @throws ioredis's error if Redis cannot be reached
 */
export async function isStream({ redis, relay }: LogPlace, address: RequestAddress): Promise<boolean> {
  const answer = relay.models.hasStreams(address.model);
  if (answer !== undefined) return answer;
  const [record, length] = await Promise.all([readRecord(redis, address), redis.llen(logKey(address))]);
  return record?.wanted === true || length > 0;
}
