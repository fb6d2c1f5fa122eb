/**
 * Finds strays: workers with pending entries that neither live nor have a grave. A stray died
 * before it joined, or the registry was wiped after its death.
 */
import { GROUP, laneKeys, registryKeys } from "../../keys.js";
import { list, text } from "../../../redis/script.js";
import { graveOf, graveText } from "./graves.js";
import type { LaneQueue } from "../lane.js";

/** @returns the consumers of the lane that have pending entries */
export async function owners({ redis, lane }: LaneQueue): Promise<string[]> {
  const [, , , consumers] = list(await redis.call("XPENDING", laneKeys(lane).ready, GROUP));
  if (consumers === null || consumers === undefined) return [];
  return list(consumers).map((row) => text(list(row)[0]));
}

/** @returns the workers in the list that neither live nor have a grave in this lane */
export async function strays({ redis, lane }: LaneQueue, workers: readonly string[]): Promise<string[]> {
  if (workers.length === 0) return [];
  const graves = workers.map((worker) => graveText(graveOf(worker, lane)));
  const [living, buried] = await Promise.all([
    redis.zmscore(registryKeys.workers, ...workers),
    redis.zmscore(registryKeys.graves, ...graves),
  ]);
  return workers.filter((_, i) => living[i] === null && buried[i] === null);
}
