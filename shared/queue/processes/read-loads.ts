/** The typed wrapper of read-loads.lua: what workers use and do now. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, text } from "../../redis/script.js";
import { registryKeys } from "../keys.js";
import { times } from "../members.js";
import { readLoad, type WorkerLoad } from "./worker-load.js";

export interface LoadedWorker {
  readonly load: WorkerLoad;
  /** Since the last beat; undefined if the worker counts as dead. */
  readonly beatAgeMs: number | undefined;
}

const script = defineScript(
  new URL("./read-loads.lua", import.meta.url),
  (reply) => {
    const [now, loads, living] = list(reply);
    return { now: integer(now), loads: list(loads).map(text), living: times(list(living).map(text)) };
  },
  { keys: ["reports", "workers"], args: [{ workers: [] }], readsOnly: true },
);

/**
 * @returns the load of each worker that has told any, by name; workers of the version before do not
 * @throws the client's error if Redis does not answer
 */
export async function readLoads(
  redis: RedisClient,
  workers: readonly string[],
): Promise<ReadonlyMap<string, LoadedWorker>> {
  if (workers.length === 0) return new Map();
  const { now, loads, living } = await script(redis, registryKeys, { workers });
  return new Map(
    workers.flatMap((worker, i) => {
      const load = readLoad(loads[i] ?? "");
      if (load === undefined) return [];
      const until = living.get(worker);
      const beatAgeMs = until === undefined ? undefined : Math.max(0, Math.round(now + load.leaseMs - until));
      return [[worker, { load, beatAgeMs }] as const];
    }),
  );
}
