/** The typed wrapper of bury.lua: strikes a worker from the living, and opens its graves. */
import type { RedisClient } from "../../../redis/connect.js";
import { defineScript, word } from "../../../redis/script.js";
import type { Lane } from "../../address.js";
import { graveOf, graveText } from "./graves.js";
import { REMEMBERED_MS, registryKeys } from "../../keys.js";

const answers = ["buried", "lives"] as const;

const script = defineScript(new URL("./bury.lua", import.meta.url), (reply) => word(reply, answers), {
  keys: ["workers", "graves", "announcements", "connections", "gone", "version", "left", "reports", "past"],
  args: ["worker", "why", "aliveUntil", "leaseMs", "remembered", { graves: [] }],
});

/**
 * The reason of a burial; the head of bury.lua explains the words. With its lease the grave of a
 * worker notes the worker's last beat, and otherwise the burial.
 */
export type Departure =
  | { readonly why: "silent"; readonly aliveUntil: number; readonly leaseMs?: number }
  | { readonly why: "ended"; readonly leaseMs?: number }
  | { readonly why: "leaving" | "stray" };

/**
 * @param lanes the lanes in which the worker leaves entries
 * @returns whether the script buried the worker. Safe to repeat.
 */
export async function bury(
  redis: RedisClient,
  worker: string,
  departure: Departure,
  lanes: readonly Lane[],
): Promise<boolean> {
  const said = await script(redis, registryKeys, {
    worker,
    why: departure.why,
    aliveUntil: departure.why === "silent" ? departure.aliveUntil : 0,
    leaseMs: ("leaseMs" in departure ? departure.leaseMs : undefined) ?? 0,
    remembered: REMEMBERED_MS,
    graves: lanes.map((lane) => graveText(graveOf(worker, lane))),
  });
  return said === "buried";
}
