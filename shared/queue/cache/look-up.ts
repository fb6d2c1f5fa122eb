/** The typed wrapper of look-up.lua: reads the answer that the cache has for a request. */
import type { RedisClient } from "../../redis/connect.js";
import { bytes, defineScript, list, word } from "../../redis/script.js";
import { cacheKeys } from "../keys.js";
import { loadKeyOf } from "../pieces/load.js";
import { ratesOfCall, standingsOf, type Rate, type RateStanding } from "../pieces/rates.js";
import type { Quota, Usage } from "../pieces/usage.js";

/** Where an answer lies. */
export interface CachePlace {
  /** Of the request, without a colon. */
  readonly digest: string;
  /** The bucket of the digest; any bucket outside of a Cluster, which has one place. */
  readonly bucket: number;
}

/** Whose limits and usage a hit counts in. */
export interface HitOwner {
  /** The shares of the bucket, in a Cluster. */
  readonly rates: readonly Rate[];
  readonly quotas: readonly Quota[];
  /** Undefined if nobody counts. `of` is the model's tag with `:` and the tenant. */
  readonly usage:
    | (Pick<Usage, "key" | "counts"> & { readonly of: string; readonly bytesIn: number; readonly keptMs: number })
    | undefined;
}

export type LookedUp =
  | { readonly said: "hit"; readonly answer: Buffer; readonly rates: readonly RateStanding[] | undefined }
  | { readonly said: "miss" }
  /** There is an answer, but a limit of the owner is in the way: admission decides. */
  | { readonly said: "held" };

const script = defineScript(
  new URL("./look-up.lua", import.meta.url),
  (reply): LookedUp => {
    const [first, answer, ...rest] = list(reply);
    const said = word(first, ["hit", "miss", "held"]);
    return said === "hit" ? { said, answer: bytes(answer), rates: standingsOf(rest) } : { said };
  },
  { keys: ["answer", "used", "load"], args: ["digest", "owner"] },
);

/** A repeated call counts a hit again. */
export function lookUp(
  redis: RedisClient,
  { digest, bucket }: CachePlace,
  owner: HitOwner | undefined,
): Promise<LookedUp> {
  const { used, answerOf } = cacheKeys(redis.isCluster ? bucket : undefined);
  const keys = { answer: answerOf(digest), used, load: loadKeyOf(redis, bucket) };
  const rates = owner && (ratesOfCall([owner]) ?? []);
  return script(redis, keys, { digest, owner: owner === undefined ? "" : JSON.stringify({ ...owner, rates }) });
}
