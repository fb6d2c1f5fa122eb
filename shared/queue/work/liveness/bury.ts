/** The typed wrapper of bury.lua: strikes a worker from the living, and opens its graves. */
import type { RedisClient } from "../../../redis/connect.js";
import { defineScript, word } from "../../../redis/script.js";
import type { Lane } from "../../address.js";
import { graveOf, graveText } from "./graves.js";
import { REMEMBERED_MS, registryKeys } from "../../keys.js";

const answers = ["buried", "lives"] as const;

const script = defineScript(new URL("./bury.lua", import.meta.url), (reply) => word(reply, answers));

/** The reason of a burial; the head of bury.lua explains the words. */
export type Departure =
  { readonly why: "silent"; readonly aliveUntil: number } | { readonly why: "ended" | "leaving" | "stray" };

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
  const { workers, graves, announcements, connections, gone, version, left } = registryKeys;
  const keys = [workers, graves, announcements, connections, gone, version, left];
  const aliveUntil = departure.why === "silent" ? departure.aliveUntil : 0;
  const opened = lanes.map((lane) => graveText(graveOf(worker, lane)));
  return (await script(redis, keys, [worker, departure.why, aliveUntil, REMEMBERED_MS, ...opened])) === "buried";
}
