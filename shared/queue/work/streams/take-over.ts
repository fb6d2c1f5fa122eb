/** The typed wrapper of take-over.lua: how a worker continues streams of a dead worker. */
import type { RequestAddress } from "../../address.js";
import { GROUP, laneKeys, logKey, outcomeKey } from "../../keys.js";
import { defineScript, words } from "../../../redis/script.js";
import { ofEachLane, type Located, type WorkerQueue } from "../lane.js";

const answers = ["together", "alone", "ended", "lost"] as const;
export type Takeover = (typeof answers)[number];

const script = defineScript(new URL("./take-over.lua", import.meta.url), words(answers), {
  keys: ["ready", "runs", { requests: ["record", "log"] }],
  args: ["group", "consumer", "takeover", { entries: [] }],
});

/**
 * @param name names this takeover, and is never empty: the call is safe to repeat under the same
 * name
 * @returns a word for each delivery, in order
 */
export function takeOver(
  { redis, consumer }: WorkerQueue,
  deliveries: readonly (RequestAddress & Located)[],
  name: string,
): Promise<Takeover[]> {
  return ofEachLane(deliveries, (lane, some) => {
    const requests = some.map((delivery) => ({ record: outcomeKey(delivery), log: logKey(delivery) }));
    const entries = some.map(({ entry }) => entry);
    return script(redis, { ...laneKeys(lane), requests }, { group: GROUP, consumer, takeover: name, entries });
  });
}
