/** What the fleet is right now, read from its announcements in Redis; the gateway holds no copy of the model repository. */
import type { Logger } from "pino";
import { announcement, type Announcement } from "#shared/contract/announcement.js";
import { GROUP, laneKeys, registryKeys } from "#shared/keys.js";
import { dropIfSilent, type RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";

export interface FleetWatch {
  /** Live workers as of the last look. */
  workers(): readonly Announcement[];
  /** False while Redis cannot be asked: nothing can be admitted then. */
  isReachable(): boolean;
}

const EVERY_MS = 250;

/** Looks once before it resolves, or gives up after one failed try and goes on looking. */
export async function watchFleet(redis: RedisClient, log: Logger, signal: AbortSignal): Promise<FleetWatch> {
  /** An announcement never changes within a worker's boot, so each is fetched once. */
  let known = new Map<string, Announcement>();
  /** The same array until the fleet changes. */
  let workers: readonly Announcement[] = [];
  let reachable = false;

  async function look(): Promise<void> {
    try {
      known = await readAnnouncements(redis, known, log);
      const now = [...known.values()];
      if (now.length !== workers.length || now.some((one, i) => one !== workers[i])) workers = now;
      reachable = true;
    } catch (error) {
      dropIfSilent(redis, error);
      reachable = false;
    }
  }
  await look();
  const keepLooking = async () => {
    while (!signal.aborted) {
      await delay(EVERY_MS, signal);
      await look();
    }
  };
  keepLooking().catch((error: unknown) => log.error({ error: String(error) }, "fleet watch ended"));
  return { workers: () => workers, isReachable: () => reachable };
}

async function readAnnouncements(redis: RedisClient, known: ReadonlyMap<string, Announcement>, log: Logger) {
  const [seconds, micros] = await redis.time();
  const now = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
  const names = await redis.zrange(registryKeys.workers, now, "+inf", "BYSCORE");
  const unknown = names.filter((name) => !known.has(name));
  const texts = unknown.length === 0 ? [] : await redis.hmget(registryKeys.announcements, ...unknown);
  const current = new Map<string, Announcement>();
  for (const name of names) {
    const before = known.get(name);
    if (before !== undefined) {
      current.set(name, before);
      continue;
    }
    const text = texts[unknown.indexOf(name)];
    if (text === null || text === undefined) continue;
    const parsed = announcement.safeParse(JSON.parse(text));
    if (parsed.success) current.set(name, parsed.data);
    else log.error({ worker: name }, "announcement of another version ignored");
  }
  return current;
}

/** The answer of `GET /v2/fleet`. */
export async function describeFleet(redis: RedisClient, workers: readonly Announcement[], shards: number) {
  const served = new Map(
    workers.flatMap(({ models }) => models.map((model) => [`${model.name}/${model.version}`, model])),
  );
  const models = await Promise.all(
    [...served.values()].map(async ({ name, version, digest, sequence }) => {
      const lanes = await Promise.all(
        Array.from({ length: shards }, (_, shard) => describeLane(redis, laneKeys({ model: name, version, shard }))),
      );
      const sum = (pick: (lane: (typeof lanes)[number]) => number) =>
        lanes.reduce((total, lane) => total + pick(lane), 0);
      return {
        name,
        version,
        digest,
        workers: workers.filter(({ models }) => models.some((m) => m.name === name && m.version === version)).length,
        queued: sum((lane) => lane.queued),
        running: sum((lane) => lane.running),
        ...(sequence && { live_sequences: sum((lane) => lane.live) }),
        set_aside: sum((lane) => lane.dead),
      };
    }),
  );
  return {
    workers: workers.map(({ worker, host, pid, startedAt, models, failed }) => ({
      name: worker,
      host,
      pid,
      started_at: new Date(startedAt).toISOString(),
      models: models.map(({ name, version }) => ({ name, version })),
      failed,
    })),
    models,
  };
}

async function describeLane(redis: RedisClient, { ready, live, dead }: ReturnType<typeof laneKeys>) {
  const [seconds] = await redis.time();
  const [length, pending, sequences, setAside] = await Promise.all([
    redis.xlen(ready),
    redis.xpending(ready, GROUP).then(
      ([count]) => Number(count),
      () => 0, // no worker has made the group yet
    ),
    redis.zcount(live, Number(seconds) * 1_000, "+inf"),
    redis.xlen(dead),
  ]);
  return { queued: length - pending, running: pending, live: sequences, dead: setAside };
}
