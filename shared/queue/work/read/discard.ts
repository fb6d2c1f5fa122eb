/** The typed wrapper of discard.lua: sets aside entries that the worker cannot read. */
import { GROUP, laneKeys } from "../../keys.js";
import { defineScript, integer } from "../../../redis/script.js";
import { byLane, type Located, type WorkerQueue } from "../lane.js";
import { loadKeyOf } from "../../pieces/load.js";
import { limitsOfSetAside } from "../../pieces/set-aside.js";

const script = defineScript(new URL("./discard.lua", import.meta.url), integer, {
  keys: ["ready", "dead", "load"],
  args: ["group", "consumer", "limits", { entries: [] }],
});

/** @returns how many entries the script set aside */
export async function discard(queue: WorkerQueue, located: readonly Located[]): Promise<number> {
  const { redis, consumer } = queue;
  const calls = byLane(located).map(([lane, some]) => {
    const { ready, dead } = laneKeys(lane);
    const entries = some.map(({ entry }) => entry);
    const keys = { ready, dead, load: loadKeyOf(redis, lane.bucket) };
    return script(redis, keys, { group: GROUP, consumer, limits: limitsOfSetAside(queue), entries });
  });
  return (await Promise.all(calls)).reduce((sum, count) => sum + count, 0);
}
