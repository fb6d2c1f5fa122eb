/** A look of the observer at the queue: the counts of all models, and the lanes with load. */
import { z } from "zod";
import type { Announcement, ServedModel } from "#shared/contract/announcement.js";
import { lookAtLane, type LaneLook } from "#shared/queue/admission/look-at-lane.js";
import { laneText, pinOf, pinText, type Lane } from "#shared/queue/address.js";
import { registryKeys } from "#shared/queue/keys.js";
import { readLoadSums, type LoadSum } from "#shared/queue/pieces/load.js";
import { timeAt } from "#shared/redis/clock.js";
import type { RedisClient } from "#shared/redis/connect.js";

/** Lanes that a round looks at: with load, in turns if there are more. */
const MOST_LANES = 200;
/** Of these lanes, those of the models with the most load; the others take turns. */
const LARGEST_LANES = 100;
/** Lanes that the observer asks about at a time. */
const TOGETHER = 64;

export interface VersionQueue extends Omit<LaneLook, "oldestAt"> {
  readonly name: string;
  readonly version: string;
  /** How long the oldest request has waited, in ms; 0 if none waits. */
  readonly oldestMs: number;
}

export interface QueueLook {
  /** By the fields of the counts; see `Load`. */
  readonly loads: ReadonlyMap<string, LoadSum>;
  /** The versions whose lanes this round has looked at. */
  readonly versions: readonly VersionQueue[];
}

/** What the look is about. */
export interface Looked {
  readonly redis: RedisClient;
  readonly buckets: number;
  /** Buckets that no server answers for now. */
  readonly away: ReadonlySet<number>;
  /** Live workers, and workers that have gone lately. */
  readonly workers: readonly Announcement[];
  /** The number of this round, from 0. */
  readonly round: number;
  /** The newest looks at lanes with load, by `laneText`; for the lanes that have no turn now. */
  readonly known: Map<string, LaneLook>;
}

/** @throws the client's error if Redis does not answer */
export async function lookAtQueue(looked: Looked): Promise<QueueLook> {
  const { redis, buckets, away, known, round } = looked;
  const loads = await readLoadSums(redis, buckets, away);
  const lanes = lanesWithLoad(looked, loads);
  const names = new Set(lanes.map(laneText));
  for (const name of known.keys()) if (!names.has(name)) known.delete(name);
  if (lanes.length === 0) return { loads, versions: [] };
  const now = await timeAt(redis, registryKeys.history);
  const turn = inTurn(lanes, round);
  for (let from = 0; from < turn.length; from += TOGETHER) {
    const some = turn.slice(from, from + TOGETHER);
    const looks = await Promise.all(some.map((lane) => lookAtLane(redis, lane, lane.levels)));
    for (const [i, look] of looks.entries()) known.set(laneText(some[i] as Lane), look);
  }
  const versions = new Map<string, VersionQueue>();
  for (const lane of lanes) {
    const { model: name, version } = lane;
    const { ready, running, parked, oldestAt = now, levels } = known.get(laneText(lane)) ?? nothing;
    const before = versions.get(`${name}/${version}`) ?? { name, version, ...nothing, oldestMs: 0 };
    versions.set(`${name}/${version}`, {
      name,
      version,
      ready: before.ready + ready,
      running: before.running + running,
      parked: before.parked + parked,
      oldestMs: Math.max(before.oldestMs, now - oldestAt),
      levels: Array.from(
        { length: Math.max(levels.length, before.levels.length) },
        (_, i) => (levels[i] ?? 0) + (before.levels[i] ?? 0),
      ),
    });
  }
  return { loads, versions: [...versions.values()] };
}

const nothing: LaneLook = { ready: 0, running: 0, parked: 0, oldestAt: undefined, levels: [] };

interface LookedLane extends Lane {
  /** The priority levels of the model; 0 for none. */
  readonly levels: number;
}

const queueConfig = z.object({
  dynamic_batching: z.object({ priority_levels: z.coerce.number() }).partial().optional(),
});

/** A single level tells nothing. */
function levelsOf({ config }: Pick<ServedModel, "config">): number {
  const levels = queueConfig.safeParse(config).data?.dynamic_batching?.priority_levels ?? 0;
  return levels >= 2 ? levels : 0;
}

/** The lanes of the models with load, those of the largest load first. */
function lanesWithLoad({ buckets, away, workers }: Looked, loads: ReadonlyMap<string, LoadSum>): readonly LookedLane[] {
  const pins = new Map(
    workers.flatMap(({ models }) =>
      models.map(
        (model) =>
          [
            `${model.name}/${pinText(pinOf(model))}`,
            { model: model.name, ...pinOf(model), levels: levelsOf(model) },
          ] as const,
      ),
    ),
  );
  const loadOf = (model: string) => loads.get(`m:${model}`)?.requests ?? 0;
  const loaded = [...pins.values()].filter(({ model }) => loadOf(model) > 0);
  return loaded
    .toSorted((a, b) => loadOf(b.model) - loadOf(a.model))
    .flatMap((pin) =>
      Array.from({ length: buckets }, (_, bucket) => ({ ...pin, bucket })).filter(({ bucket }) => !away.has(bucket)),
    );
}

/** The lanes of a round: some of the largest, and others by turns. */
function inTurn(lanes: readonly LookedLane[], round: number): readonly LookedLane[] {
  if (lanes.length <= MOST_LANES) return lanes;
  const [largest, others] = [lanes.slice(0, LARGEST_LANES), lanes.slice(LARGEST_LANES)];
  const from = (round * (MOST_LANES - LARGEST_LANES)) % others.length;
  return [...largest, ...[...others.slice(from), ...others.slice(0, from)].slice(0, MOST_LANES - LARGEST_LANES)];
}
