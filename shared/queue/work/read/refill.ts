/** The typed wrapper of refill.lua: makes parked requests ready for a worker that has room. */
import { chunks } from "../../../chunks.js";
import { defineScript, integer } from "../../../redis/script.js";
import type { RedisClient } from "../../../redis/connect.js";
import { loadKeyOf } from "../../pieces/load.js";
import { GROUP } from "../../keys.js";
import type { LanesByKey } from "../stream.js";

const script = defineScript(new URL("./refill.lua", import.meta.url), integer, {
  keys: ["load", { ready: [] }],
  args: ["group", { lanes: ["model", "room"] }],
});

/** The lanes of a model, and how many requests of the model the worker can take. */
export interface Wanted {
  readonly lanes: LanesByKey;
  readonly room: number;
}

/** Lanes per call, because Lua's unpack takes a limited number of values. */
const AT_ONCE = { bytes: Infinity, items: 2_000 };

/**
 * @param wanted in a Redis Cluster, all lanes are of the same bucket
 * @returns how many requests the script moved
 */
export async function refill(redis: RedisClient, wanted: readonly Wanted[]): Promise<number> {
  const lanes = wanted.flatMap(({ lanes, room }, model) =>
    [...lanes].map(([ready, { bucket }]) => ({ ready, bucket, model, room })),
  );
  const calls = chunks(lanes, () => 0, AT_ONCE).map((some) => {
    const keys = { load: loadKeyOf(redis, some[0]?.bucket ?? 0), ready: some.map(({ ready }) => ready) };
    return script(redis, keys, { group: GROUP, lanes: some });
  });
  return (await Promise.all(calls)).reduce((sum, count) => sum + count, 0);
}
