/**
 * How a checkpoint is written: ahead of the script that refers to it, in one transaction, under a
 * key that nothing refers to yet. Scripts include version.lua, which says what a sequence has.
 */
import type { Call } from "../redis/transaction.js";

const DAY_MS = 86_400_000;

/** A checkpoint that is to be written. */
export interface Version {
  /** From `versionKey`. */
  readonly key: string;
  readonly checkpoint: Buffer;
  readonly ttlMs: number;
}

/**
 * For how long a version is kept although nothing refers to it, and at least although something
 * does. A sequence that lasts longer has its versions renewed by the scripts.
 */
export function versionTtlMs(maxIdleMs: number): number {
  return Math.min(maxIdleMs, DAY_MS) + 2 * DAY_MS;
}

/** The call that goes into the transaction of the script. */
export function settingVersion({ key, checkpoint, ttlMs }: Version): Call {
  return ["SET", key, checkpoint, "PX", ttlMs];
}
