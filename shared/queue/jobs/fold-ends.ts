/** The typed wrapper of fold-ends.lua: counts the ended jobs of gone models under one name. */
import { OTHER } from "../../metrics/cells.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript } from "../../redis/script.js";
import { loadKeyOf, readAllLoads } from "../pieces/load.js";

const script = defineScript(new URL("./fold-ends.lua", import.meta.url), () => undefined, {
  keys: ["load"],
  args: [{ ends: ["field", "other"] }],
});

/** Fields of a call: Lua's unpack takes a limited number of values. */
const AT_ONCE = 1_000;

/** @param known the models that are not gone */
export async function foldEnds(redis: RedisClient, bucket: number, known: ReadonlySet<string>): Promise<void> {
  const loads = await readAllLoads(redis, redis.isCluster ? bucket : undefined);
  const ends = loads.flatMap(({ field }) => {
    const [, state, model = ""] = /^(e:[a-z]+:)(.*)$/.exec(field) ?? [];
    const isGone = state !== undefined && model !== OTHER && !known.has(model);
    return isGone ? [{ field, other: `${state}${OTHER}` }] : [];
  });
  for (let i = 0; i < ends.length; i += AT_ONCE) {
    await script(redis, { load: loadKeyOf(redis, bucket) }, { ends: ends.slice(i, i + AT_ONCE) });
  }
}
