/** The typed wrapper of hibernate.lua: checkpoints that lie on disk leave Redis. */
import { defineScript, integer } from "../../redis/script.js";
import type { RedisClient } from "../../redis/connect.js";
import type { Lane } from "../address.js";
import { hibernationKeys } from "../keys.js";

/** A checkpoint that was written to a file. */
export interface Sleeping {
  /** From `versionKey`. */
  readonly key: string;
  readonly pointer: string;
}

const script = defineScript(new URL("./hibernate.lua", import.meta.url), integer);

/** Where nothing was hibernated for so long, the next round looks at all idle sequences again. */
const REACHED_TTL_MS = 86_400_000;

/**
 * @param where one bucket of a model; the checkpoints are of it
 * @param reached up to which time of the live set all have been looked at
 * @returns how many were there still
 */
export function hibernate(
  redis: RedisClient,
  where: Pick<Lane, "bucket" | "model">,
  sleeping: readonly Sleeping[],
  reached: number,
): Promise<number> {
  const keys = [hibernationKeys(where).reached, ...sleeping.map(({ key }) => key)];
  return script(redis, keys, [reached, REACHED_TTL_MS, ...sleeping.map(({ pointer }) => pointer)]);
}
