/** The typed wrapper of read-used.lua: what an owner has used of its rates and of the queue. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, list } from "../../redis/script.js";
import { loadKey } from "../keys.js";
import type { Load } from "../pieces/load.js";
import { ratesOfCall, shareOfRate, standingsOf, type ChargedRate, type RateStanding } from "../pieces/rates.js";
import { loadsOf } from "./limits.js";

/** What a limit of an owner counts. */
export interface UsedTerms {
  /** A rate of tokens has a charge, of which nothing is taken. */
  readonly rates: readonly ChargedRate[];
  /** As in `Load`; one at least. */
  readonly fields: readonly string[];
}

export interface UsedOfQueue {
  readonly standings: readonly RateStanding[];
  readonly loads: readonly Load[];
}

const script = defineScript(
  new URL("./read-used.lua", import.meta.url),
  (reply): UsedOfQueue => {
    const [standings, loads] = list(reply);
    return { standings: standingsOf(list(standings)) ?? [], loads: loadsOf(list(loads)) };
  },
  { keys: ["load"], args: ["rates", { fields: [] }] },
);

/** @returns the sums over all buckets, in the order of the terms' rates and fields */
export async function readUsed(redis: RedisClient, buckets: number, terms: UsedTerms): Promise<UsedOfQueue> {
  const asked = redis.isCluster ? Array.from({ length: buckets }, (_, bucket) => bucket) : [undefined];
  const found = await Promise.all(asked.map((bucket) => readBucket(redis, bucket, buckets, terms)));
  const standings = found.flatMap((one) => one.standings);
  const loads = found.flatMap((one) => one.loads);
  return {
    standings: terms.rates.map(({ name, burst }) => {
      const own = standings.filter((one) => one.name === name);
      // Each bucket admits one, so the shares of a small burst come to more. The owner is rested
      // once it is rested in every bucket.
      const remaining = Math.min(
        burst,
        own.reduce((sum, one) => sum + one.remaining, 0),
      );
      return { name, remaining, resetUs: Math.max(0, ...own.map(({ resetUs }) => resetUs)) };
    }),
    loads: terms.fields.map((field) => {
      const own = loads.filter((one) => one.field === field);
      const sum = (of: "requests" | "bytes") => own.reduce((total, one) => total + one[of], 0);
      return { field, requests: sum("requests"), bytes: sum("bytes") };
    }),
  };
}

/** @param bucket undefined outside of a Cluster */
function readBucket(
  redis: RedisClient,
  bucket: number | undefined,
  buckets: number,
  { rates, fields }: UsedTerms,
): Promise<UsedOfQueue> {
  const own = ratesOfCall([{ rates }], (rate) => (bucket === undefined ? rate : shareOfRate(rate, bucket, buckets)));
  return script(redis, { load: loadKey(bucket) }, { rates: JSON.stringify(own ?? []), fields });
}
