/** The typed wrapper of note-begun.lua: notes that requests of jobs have begun. */
import { requestName, type Lane } from "../../address.js";
import type { Delivery } from "../../entry.js";
import { GROUP, laneKeys, modelTag } from "../../keys.js";
import { defineScript } from "../../../redis/script.js";
import type { WorkerQueue } from "../lane.js";

const script = defineScript(new URL("./note-begun.lua", import.meta.url), () => undefined, {
  keys: ["ready"],
  args: ["group", "consumer", "base", { requests: ["entry", "request"] }],
});

/** @param deliveries of the same model */
export async function noteBegun({ redis, consumer }: WorkerQueue, deliveries: readonly Delivery[]): Promise<void> {
  const byLane = new Map<Lane, Delivery[]>();
  for (const one of deliveries) byLane.set(one.lane, [...(byLane.get(one.lane) ?? []), one]);
  await Promise.all(
    [...byLane].map(([lane, some]) => {
      const requests = some.map((one) => ({ entry: one.entry, request: requestName(one) }));
      return script(redis, laneKeys(lane), { group: GROUP, consumer, base: modelTag(lane), requests });
    }),
  );
}
