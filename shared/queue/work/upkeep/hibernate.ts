/**
 * The typed wrapper of hibernate.lua: replaces checkpoints in Redis by pointers to their files.
 */
import { defineScript, integer } from "../../../redis/script.js";
import type { RedisClient } from "../../../redis/connect.js";
import type { Lane } from "../../address.js";
import { hibernationKeys, liveKey, modelTag } from "../../keys.js";

/** A checkpoint in a file. */
export interface Sleeping {
  /** From `versionKey`. */
  readonly key: string;
  readonly pointer: string;
}

const script = defineScript(new URL("./hibernate.lua", import.meta.url), integer, {
  keys: ["live", "reached", { checkpoints: [] }],
  args: ["base", "reached", "ttl", { pointers: [] }, { active: [] }],
});

/** After so long without a hibernation, the next round looks at all idle sequences again. */
const REACHED_TTL_MS = 86_400_000;

/**
 * @param where a bucket of a model; the checkpoints are of this bucket
 * @param active sequences, by their names, that the round has found busy or not idle for long
 * @param reached the time in the live set up to which the rounds have looked at all sequences
 * @returns how many checkpoints were still in Redis
 */
export function hibernate(
  redis: RedisClient,
  where: Pick<Lane, "bucket" | "model">,
  sleeping: readonly Sleeping[],
  active: readonly string[],
  reached: number,
): Promise<number> {
  const { reached: progress } = hibernationKeys(where);
  const keys = { live: liveKey(where), reached: progress, checkpoints: sleeping.map(({ key }) => key) };
  const pointers = sleeping.map(({ pointer }) => pointer);
  return script(redis, keys, { base: modelTag(where), reached, ttl: REACHED_TTL_MS, pointers, active });
}
