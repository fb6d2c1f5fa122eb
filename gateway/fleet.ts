/** What the fleet is right now, read from its announcements in Redis; the gateway holds no copy of the model repository. */
import type { Logger } from "pino";
import { announcement, type Announcement } from "#shared/contract/announcement.js";
import { InferenceError } from "#shared/errors.js";
import { GROUP, laneKeys, REMEMBERED_MS, registryKeys } from "#shared/keys.js";
import { dropIfSilent, type RedisClient } from "#shared/redis/connect.js";
import { delay, isTransient } from "#shared/retry.js";
import { writeRefusal } from "./write-refusal.js";

export interface FleetWatch {
  /** Live workers as of the last look. */
  readonly workers: () => readonly Announcement[];
  /** Workers that have gone lately: what they served is still known, and requests for it queue. */
  readonly lapsed: () => readonly Announcement[];
  /** False while Redis cannot be asked, or refuses writes: nothing can be admitted then. */
  readonly canAdmit: () => boolean;
}

const EVERY_MS = 250;
const FIRST_LOOK_PAUSE_MS = 50;

/** Resolves after the first look that worked: a gateway that knows no fleet yet would call every model unknown. */
export async function watchFleet(redis: RedisClient, log: Logger, signal: AbortSignal): Promise<FleetWatch> {
  /** An announcement never changes within a worker's boot, so each is fetched once. */
  let known = new Map<string, Announcement>();
  /** The same arrays until the fleet changes. */
  let workers: readonly Announcement[] = [];
  let lapsed: readonly Announcement[] = [];
  let reachable = false;
  /** Why Redis takes no writes, in its own words; undefined while it takes them. */
  let refusal: string | undefined;

  async function look(): Promise<void> {
    try {
      const [seen, refused] = await Promise.all([readAnnouncements(redis, known, log), writeRefusal(redis)]);
      logChange(log, refusal, refused);
      refusal = refused;
      known = seen.all;
      workers = unlessSame(workers, seen.live);
      lapsed = unlessSame(lapsed, seen.lapsed);
      reachable = true;
    } catch (error) {
      dropIfSilent(redis, error);
      reachable = false;
    }
  }
  while (!reachable && !signal.aborted) {
    await look();
    if (!reachable) await delay(FIRST_LOOK_PAUSE_MS, signal);
  }
  const keepLooking = async () => {
    while (!signal.aborted) {
      await delay(EVERY_MS, signal);
      await look();
    }
  };
  keepLooking().catch((error: unknown) => log.error({ error: String(error) }, "fleet watch ended"));
  return { workers: () => workers, lapsed: () => lapsed, canAdmit: () => reachable && refusal === undefined };
}

/** Once for as long as Redis gives the same reason: an error's first word is its kind. */
function logChange(log: Logger, before: string | undefined, now: string | undefined): void {
  if (before?.split(" ", 1)[0] === now?.split(" ", 1)[0]) return;
  if (now === undefined) log.info("redis takes writes again: ready");
  else log.warn({ error: now }, "redis refuses writes: not ready, nothing can be admitted");
}

function unlessSame<T>(before: readonly T[], now: readonly T[]): readonly T[] {
  return now.length === before.length && now.every((one, i) => one === before[i]) ? before : now;
}

async function readAnnouncements(redis: RedisClient, known: ReadonlyMap<string, Announcement>, log: Logger) {
  const [seconds, micros] = await redis.time();
  const now = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
  const rows = await redis.zrange(registryKeys.workers, now - REMEMBERED_MS, "+inf", "BYSCORE", "WITHSCORES");
  const names = rows.filter((_, i) => i % 2 === 0);
  const unknown = names.filter((name) => !known.has(name));
  const texts = unknown.length === 0 ? [] : await redis.hmget(registryKeys.announcements, ...unknown);
  const all = new Map<string, Announcement>();
  const live: Announcement[] = [];
  const lapsed: Announcement[] = [];
  for (const [i, name] of names.entries()) {
    const one = known.get(name) ?? parse(name, texts[unknown.indexOf(name)], log);
    if (one === undefined) continue;
    all.set(name, one);
    (Number(rows[2 * i + 1]) > now ? live : lapsed).push(one);
  }
  const byName = (a: Announcement, b: Announcement) => (a.worker < b.worker ? -1 : 1);
  return { all, live: live.sort(byName), lapsed: lapsed.sort(byName) };
}

function parse(worker: string, text: string | null | undefined, log: Logger): Announcement | undefined {
  if (text === null || text === undefined) return undefined;
  try {
    return announcement.parse(JSON.parse(text));
  } catch {
    log.error({ worker }, "unreadable announcement ignored: a worker of another version?");
    return undefined;
  }
}

/** The answer of `GET /v2/fleet`. @throws InferenceError while Redis cannot be asked */
export async function describeFleet(redis: RedisClient, workers: readonly Announcement[], shards: number) {
  try {
    return await description(redis, workers, shards);
  } catch (error) {
    dropIfSilent(redis, error);
    if (!isTransient(error)) throw error;
    throw new InferenceError("unavailable", "the fleet cannot be asked now", { cause: error });
  }
}

async function description(redis: RedisClient, workers: readonly Announcement[], shards: number) {
  const served = new Map(
    workers.flatMap(({ models }) => models.map((model) => [`${model.name}/${model.version}`, model])),
  );
  const models = await Promise.all(
    [...served.values()].map(async ({ name, version, digest, sequence, warnings }) => {
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
        ...(warnings && { warnings }),
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
