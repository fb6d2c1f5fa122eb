/** The typed wrapper of put-off.lua: delays a due job that finds no room. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer } from "../../redis/script.js";
import { requestName, type RequestAddress } from "../address.js";
import { stageText, type Stage } from "../pieces/job.js";
import { jobKey, modelTag } from "../keys.js";
import { loadKeyOf } from "../pieces/load.js";

/** The first wait, and the longest without the random factor, in ms. */
const WAITS_MS = { first: 500, most: 30_000 };

const script = defineScript(
  new URL("./put-off.lua", import.meta.url),
  (reply) => (integer(reply) < 0 ? undefined : integer(reply)),
  {
    keys: ["record", "load"],
    args: ["base", "job", "stage", "first", "most", "factor"],
    durable: true,
  },
);

/**
 * @param stage the only stage at which the script delays the job
 * @param mostMs the job does not wait for much longer than this
 * @returns after how many ms the job is due; undefined at another stage
 */
export function putOff(
  redis: RedisClient,
  job: RequestAddress,
  stage: Stage,
  mostMs: number,
): Promise<number | undefined> {
  const keys = { record: jobKey(job), load: loadKeyOf(redis, job.bucket) };
  return script(redis, keys, {
    base: modelTag(job),
    job: requestName(job),
    stage: stageText(stage),
    first: WAITS_MS.first,
    most: Math.max(Math.min(mostMs, WAITS_MS.most), 1),
    factor: 1 + Math.random() / 2,
  });
}
