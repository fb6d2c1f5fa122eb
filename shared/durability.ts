/**
 * How many acknowledged changes a failure of Redis may lose: an operator chooses from three modes.
 * Redis needs the mode's settings too; `redis/server-faults.ts` checks them.
 */

/**
 * - `strict`: a power cut loses nothing; a failover loses changes that the replica had not yet
 *   received
 * - `fast`: a power cut loses about the last second
 * - `replicated`: as `strict`, and an acknowledgement also waits until a replica has the write
 */
export const durabilities = ["strict", "fast", "replicated"] as const;
export type Durability = (typeof durabilities)[number];
