/** The labels under which workers publish a request's records, beside the request's own subject. */
import type { RedisClient } from "../../redis/connect.js";
import { parseRequestName, type RequestAddress } from "../address.js";
import { parseLabels } from "../pieces/job.js";
import { jobKey, outcomeKey } from "../keys.js";

/**
 * @param address of a stream
 * @returns the labels of the job that the request runs, as tokens
 */
export async function readLabels(redis: RedisClient, address: RequestAddress): Promise<readonly string[]> {
  const job = await redis.hget(outcomeKey(address), "job");
  if (job === null) return [];
  return parseLabels((await redis.hget(jobKey({ ...address, ...parseRequestName(job) }), "labels")) ?? undefined);
}
