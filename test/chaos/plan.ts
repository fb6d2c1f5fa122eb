/**
 * The plan of faults and their times. A seed decides the whole plan before the run begins, so the
 * same seed breaks the same parts at the same times.
 */
import type { Random } from "../support/fleet/random.js";

export interface Dose {
  readonly workerKills: number;
  readonly workerFreezes: number;
  readonly gatewayKills: number;
  readonly redisKills: number;
  readonly redisResets: number;
  readonly redisStalls: number;
  readonly lostReplies: number;
  readonly natsKills: number;
  readonly natsResets: number;
  readonly poison: number;
}

/**
 * `minimum` is the least dose for a release: 30 worker kills, 25 freezes past the lease, 3 kills of
 * Redis, 15 resets of Redis connections, 8 lost replies and 8 resets of NATS in one run. The dose
 * plans a few more of the faults that may miss by chance. `short` is for `npm test`.
 */
export const doses = {
  minimum: {
    workerKills: 32,
    workerFreezes: 27,
    gatewayKills: 4,
    redisKills: 3,
    redisResets: 16,
    redisStalls: 2,
    lostReplies: 12,
    natsKills: 1,
    natsResets: 9,
    poison: 2,
  },
  short: {
    workerKills: 6,
    workerFreezes: 4,
    gatewayKills: 1,
    redisKills: 1,
    redisResets: 4,
    redisStalls: 1,
    lostReplies: 3,
    natsKills: 1,
    natsResets: 2,
    poison: 1,
  },
} as const satisfies Record<string, Dose>;

export type RedisLine = "gatewayRedis" | "workerRedis";

export type Fault = { readonly at: number } & (
  | { readonly kind: "workerKill"; readonly worker: number }
  | { readonly kind: "workerFreeze"; readonly worker: number; readonly forMs: number }
  | { readonly kind: "workerRoll"; readonly worker: number }
  | { readonly kind: "newVersion" }
  | { readonly kind: "gatewayKill"; readonly gateway: number; readonly forMs: number }
  | { readonly kind: "redisKill"; readonly master: number; readonly forMs: number }
  | { readonly kind: "replicaKill"; readonly replica: number; readonly forMs: number }
  | { readonly kind: "natsKill"; readonly forMs: number }
  | { readonly kind: "redisReset"; readonly line: RedisLine }
  | { readonly kind: "redisStall"; readonly line: RedisLine; readonly forMs: number }
  | { readonly kind: "lostReply"; readonly line: RedisLine; readonly nth: number }
  | { readonly kind: "natsReset" }
);

export interface Circumstances {
  readonly durationMs: number;
  readonly workers: number;
  readonly gateways: number;
  readonly leaseMs: number;
  /** How many masters the store has; one unless the store is a Cluster. */
  readonly masters?: number;
  /** How many replicas all masters have together; without this, none. */
  readonly replicas?: number;
  /** How second versions are rolled out in the middle of the run; absent if they are not. */
  readonly rolled?: RollOut;
}

/**
 * `restart`: each worker in turn has to end, and starts anew with the second versions. `poll`: the
 * second versions appear in the repository, which the workers poll.
 */
export type RollOut = "restart" | "poll";

/**
 * About how long a killed worker is out of work, in milliseconds. The injector waits for the
 * worker.
 */
const RESTART_MS = 1_500;
/** The first and the last part of a run have no faults, since the load has to be under way. */
const CALM_MS = 500;

const lines: readonly RedisLine[] = ["gatewayRedis", "workerRedis"];

export function planFaults(dose: Dose, place: Circumstances, random: Random): Fault[] {
  const faults: Fault[] = workerFaults(dose, place, random.fork("workers"));
  const add = (kind: string, count: number, make: (at: number, own: Random) => Fault) => {
    const own = random.fork(kind);
    for (const at of spread(count, place.durationMs, own)) faults.push(make(at, own));
  };
  add("gatewayKill", dose.gatewayKills, (at, own) => {
    return { kind: "gatewayKill", at, gateway: own.between(0, place.gateways - 1), forMs: own.between(0, 500) };
  });
  const { masters = 1, replicas = 0, rolled } = place;
  add("redisKill", dose.redisKills, (at, own) => {
    return { kind: "redisKill", at, master: own.between(0, masters - 1), forMs: own.between(50, 600) };
  });
  // A master without a replica takes no writes, so each kill of a replica counts, too.
  add("replicaKill", replicas === 0 ? 0 : dose.redisKills, (at, own) => {
    return { kind: "replicaKill", at, replica: own.between(0, replicas - 1), forMs: own.between(50, 600) };
  });
  if (rolled === "restart") faults.push(...rollOut(place, random.fork("workerRoll")));
  if (rolled === "poll") faults.push({ kind: "newVersion", at: Math.round(place.durationMs / 3) });
  add("natsKill", dose.natsKills, (at, own) => ({ kind: "natsKill", at, forMs: own.between(500, 2_000) }));
  add("redisReset", dose.redisResets, (at, own) => ({ kind: "redisReset", at, line: own.pick(lines) }));
  add("redisStall", dose.redisStalls, (at, own) => {
    return { kind: "redisStall", at, line: own.pick(lines), forMs: own.between(300, 1_500) };
  });
  add("lostReply", dose.lostReplies, (at, own) => {
    return { kind: "lostReply", at, line: own.pick(lines), nth: own.between(1, 12) };
  });
  add("natsReset", dose.natsResets, (at) => ({ kind: "natsReset", at }));
  return faults.sort((a, b) => a.at - b.at);
}

/**
 * Kills and freezes in random order: a worker has one at a time, and one worker is always spared.
 */
function workerFaults(dose: Dose, place: Circumstances, random: Random): Fault[] {
  const kinds = random.shuffle([
    ...Array.from({ length: dose.workerKills }, () => "workerKill" as const),
    ...Array.from({ length: dose.workerFreezes }, () => "workerFreeze" as const),
  ]);
  const busyUntil = Array.from({ length: place.workers }, () => 0);
  return spread(kinds.length, place.durationMs, random).map((wanted, i) => {
    const [first = 0, second = first] = [...busyUntil].sort((a, b) => a - b);
    const at = Math.max(wanted, place.workers > 1 ? second : first);
    const free = busyUntil.flatMap((until, worker) => (until <= at ? [worker] : []));
    const worker = random.pick(free);
    if (kinds[i] === "workerFreeze") {
      const forMs = Math.round(place.leaseMs * (1.2 + random.unit()));
      busyUntil[worker] = at + forMs + 200;
      return { kind: "workerFreeze", at, worker, forMs };
    }
    busyUntil[worker] = at + RESTART_MS;
    return { kind: "workerKill", at, worker };
  });
}

/** Every worker once, one after the other, in the middle third of the run. */
function rollOut({ durationMs, workers }: Circumstances, random: Random): Fault[] {
  const order = random.shuffle(Array.from({ length: workers }, (_, worker) => worker));
  const part = durationMs / 3 / workers;
  return order.map((worker, i) => ({ kind: "workerRoll", at: Math.round(durationMs / 3 + i * part), worker }));
}

/** One moment in each of `count` equal parts of the duration. */
function spread(count: number, durationMs: number, random: Random): number[] {
  const part = (durationMs - 2 * CALM_MS) / Math.max(count, 1);
  return Array.from({ length: count }, (_, i) => Math.round(CALM_MS + (i + random.unit()) * part));
}
