/**
 * How to write a checkpoint: ahead of the script that refers to it, in one transaction, under a key
 * to which nothing refers yet. Scripts include version.lua, which knows a sequence's checkpoints.
 */
import type { Call } from "../../redis/transaction.js";

const DAY_MS = 86_400_000;

/** A checkpoint to write. */
export interface Version {
  /** From `versionKey`. */
  readonly key: string;
  readonly checkpoint: Buffer;
  readonly ttlMs: number;
}

/**
 * The TTL of a new version, with or without a reference to the version. The scripts renew the
 * versions of a sequence that lasts longer.
 */
export function versionTtlMs(maxIdleMs: number): number {
  return Math.min(maxIdleMs, DAY_MS) + 2 * DAY_MS;
}

/** The call that goes into the transaction of the script. */
export function settingVersion({ key, checkpoint, ttlMs }: Version): Call {
  return ["SET", key, checkpoint, "PX", ttlMs];
}
