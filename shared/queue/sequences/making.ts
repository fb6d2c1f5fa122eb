/** The terms for a sequence that continues from a checkpoint; see making.lua. */
import type { RedisClient } from "../../redis/connect.js";
import { keysOf, type SequenceAddress } from "./address.js";

export interface SequenceTerms {
  /** How long the model's sequences live between their steps. */
  readonly maxIdleMs: number;
  /**
   * Most live sequences of the model; in a Cluster, in the bucket. Beyond this limit the script
   * makes no sequence.
   */
  readonly liveSequences: number;
  /** The same of the tenant's sequences, of all models; absent: no limit. */
  readonly mostOfTenant?: number | undefined;
  /** How many buckets the deployment has: outside of a Cluster their sequences count together. */
  readonly buckets: number;
}

/** The keys of a script that makes a sequence. */
export function makingKeys(redis: RedisClient, sequence: SequenceAddress, { buckets }: SequenceTerms) {
  const together = Array.from({ length: redis.isCluster ? 0 : buckets }, (_, bucket) => ({ ...sequence, bucket }));
  const others = together.filter(({ bucket }) => bucket !== sequence.bucket).map((other) => keysOf(other).live);
  return { ...keysOf(sequence), others };
}
