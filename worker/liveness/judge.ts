/**
 * Decides which of the silent workers are dead. A wrong decision costs work, never an answer: what
 * counts is who owns an entry, and that is not decided here. Pure.
 */
import type { Silent } from "#shared/queue/work/heartbeat.js";
import { MOST_RETRY_MS } from "#shared/redis/connect.js";
import { serverOf, type ConnectionName } from "#shared/redis/own-connection.js";

/** What one look has shown. */
export interface Look {
  /** When it was, on `performance.now()`'s clock. */
  readonly at: number;
  /** The same moment in Redis ms. */
  readonly redisNow: number;
  readonly leaseMs: number;
  /** Workers that have been silent for longer than a living one is. */
  readonly silent: readonly Silent[];
  /** This worker's own connection; undefined while it is not known. */
  readonly own: ConnectionName | undefined;
  /** Which connections are there; undefined where nobody asked or the server does not tell. */
  readonly present: ReadonlySet<ConnectionName> | undefined;
  /** How long this worker's own link has been up, in ms; Infinity if it was never lost. */
  readonly upForMs: number;
}

/** What earlier looks have shown of a worker that is silent. */
interface Suspicion {
  /** It has not beaten since. */
  readonly aliveUntil: number;
  /** Since when every look has found it silent, on `performance.now()`'s clock. */
  readonly silentSince: number;
  /** Since when every look has found it without its connection; undefined if the last did not. */
  readonly absentSince: number | undefined;
}

/** The silent workers that are to be looked at again, by name. */
export type Missing = ReadonlyMap<string, Suspicion>;

/** A link that was cut is back sooner than this, in ms. */
export const APART_MS = 75;
/**
 * After an outage of Redis, or a cut of all links, other workers may be back later than this one by
 * the longest pause between two tries to connect, and a look takes its time.
 */
const UP_MS = MOST_RETRY_MS + 150;

/** The connections to ask for: those that this worker's own server could have. */
export function worthAsking({ silent, own, upForMs }: Pick<Look, "silent" | "own" | "upForMs">): ConnectionName[] {
  if (own === undefined || upForMs < UP_MS) return [];
  return silent.map(({ connection }) => connection).filter((one) => one !== "" && serverOf(one) === serverOf(own));
}

/**
 * A silent worker is dead:
 *
 * - when its connection to this very server is gone, at two looks in a row. One look is not enough,
 *   since a link that is cut is back within a tenth of a second.
 * - when it has been silent for a lease. Where it was last connected to another server than this
 *   worker now, the server has restarted or taken over and knows of no beat since: then this worker
 *   must itself have found it silent for a lease. The same holds where nobody knows the servers.
 *
 * @param missing what the last call returned
 * @returns who has died, and who is to be looked at again
 */
export function judge(missing: Missing, look: Look): { readonly dead: readonly Silent[]; readonly missing: Missing } {
  const { at, redisNow, leaseMs, silent, own, present, upForMs } = look;
  // Behind a proxy that shares connections, the list may not name this worker either. Such a list
  // says nothing about others.
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
