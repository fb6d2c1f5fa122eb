/**
 * Decides which of the silent workers are dead. A wrong decision costs work, never an answer,
 * because each commit checks the ownership of its entry. Pure.
 */
import type { Silent } from "#shared/queue/work/liveness/heartbeat.js";
import { MOST_RETRY_MS } from "#shared/redis/connect.js";
import { serverOf, type ConnectionName } from "#shared/redis/own-connection.js";

/** The facts of one look at the silent workers. */
export interface Look {
  /** The time of the look, on `performance.now()`'s clock. */
  readonly at: number;
  /** The same moment in Redis ms. */
  readonly redisNow: number;
  readonly leaseMs: number;
  /** Workers whose silence is longer than a living worker's. */
  readonly silent: readonly Silent[];
  /** This worker's own connection; undefined while unknown. */
  readonly own: ConnectionName | undefined;
  /**
   * The connections at the server; undefined if this look did not ask, or the server refuses the
   * list.
   */
  readonly present: ReadonlySet<ConnectionName> | undefined;
  /** How long this worker's own link has been up, in ms; Infinity if the link was never lost. */
  readonly upForMs: number;
}

/** The results of earlier looks at a silent worker. */
interface Suspicion {
  /** The end of the worker's lease. A different time means that the worker has beaten since. */
  readonly aliveUntil: number;
  /**
   * The first of the looks in a row that found the worker silent, on `performance.now()`'s clock.
   */
  readonly silentSince: number;
  /**
   * The first of the looks in a row that found no connection; undefined if the last look found the
   * connection.
   */
  readonly absentSince: number | undefined;
}

/** The silent workers to look at again, by name. */
export type Missing = ReadonlyMap<string, Suspicion>;

/** The time in which a cut link is back, in ms. */
export const APART_MS = 75;
/**
 * Least time of this worker's own link, in ms, before a missing connection counts. After an outage
 * of Redis, or a cut of all links, another worker may connect later by the longest pause between
 * two tries. The rest is the time of a look.
 */
const UP_MS = MOST_RETRY_MS + 150;

/** The connections to ask for: of silent workers that this worker's own server could have. */
export function worthAsking({ silent, own, upForMs }: Pick<Look, "silent" | "own" | "upForMs">): ConnectionName[] {
  if (own === undefined || upForMs < UP_MS) return [];
  return silent.map(({ connection }) => connection).filter((one) => one !== "" && serverOf(one) === serverOf(own));
}

/**
 * Sorts the silent workers. A silent worker is dead in two cases:
 *
 * - Its connection to this very server is missing at two looks, at least `APART_MS` apart. One look
 *   is not enough, because a cut link is back within a tenth of a second.
 * - The worker has been silent for a lease. If its last connection was to another server than this
 *   worker's, the server has restarted or failed over, and has none of the beats since. Then this
 *   worker must itself have found the silence to last a lease. The same holds if the servers are
 *   unknown.
 *
 * @param missing the result of the last call
 * @returns the dead workers, and the workers to look at again
 */
export function judge(missing: Missing, look: Look): { readonly dead: readonly Silent[]; readonly missing: Missing } {
  const { at, redisNow, leaseMs, silent, own, present, upForMs } = look;
  // Behind a proxy that shares connections, the list may lack even this worker. Such a list proves
  // nothing about other workers.
  const tells = own !== undefined && present?.has(own) === true && upForMs >= UP_MS;
  const seen = new Map<string, Suspicion>();
  const dead = silent.filter(({ worker, aliveUntil, connection }) => {
    const earlier = missing.get(worker);
    const before = earlier?.aliveUntil === aliveUntil ? earlier : undefined;
    const silentSince = before?.silentSince ?? at;
    const isHere = own !== undefined && connection !== "" && serverOf(connection) === serverOf(own);
    const isAbsent = tells && isHere && !present.has(connection);
    const absentSince = isAbsent ? (before?.absentSince ?? at) : undefined;
    seen.set(worker, { aliveUntil, silentSince, absentSince });
    if (absentSince !== undefined && at - absentSince >= APART_MS) return true;
    if (redisNow < aliveUntil) return false;
    return isHere || at - silentSince >= leaseMs;
  });
  return { dead, missing: seen };
}
