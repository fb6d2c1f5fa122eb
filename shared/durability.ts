/**
 * How much of what was acknowledged a failure of Redis may lose: the three modes that an operator
 * chooses from. Redis itself has to be set up for the mode; `redis/server-faults.ts` checks it.
 */

/**
 * - `strict`: a power cut loses nothing; a failover loses what the replica had not yet received
 * - `fast`: a power cut loses about the last second
 * - `replicated`: as `strict`, and an acknowledgement also waits until a replica has the write
 */
export const durabilities = ["strict", "fast", "replicated"] as const;
export type Durability = (typeof durabilities)[number];
