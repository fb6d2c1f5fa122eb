/**
 * Decides who has died before its lease says so: who holds steps, is silent, and has no connection to Redis, at two looks in a row. One look is not enough: a link that is
 * cut is back within a tenth of a second. To be wrong costs work, never an answer: owning an entry is what counts, and that is not decided here.
 */

import { MOST_RETRY_MS } from "#shared/redis/connect.js";

/** What one look has shown. */
export interface Look {
  readonly at: number;
  /** This worker's own name. */
  readonly self: string;
  /** Workers that hold steps and have not been heard of for longer than the living are silent. */
  readonly silent: readonly string[];
  /** Who is connected; undefined where the server does not tell. */
  readonly connected: ReadonlySet<string> | undefined;
  /** How long our own link has been up since it was last lost, in ms; Infinity if it never was. */
  readonly upForMs: number;
}

/** Since when each has been missing, without a look that showed it. */
export type Missing = ReadonlyMap<string, number>;

/** A link that is cut is back sooner. */
export const APART_MS = 75;
/** After an outage of Redis, or a cut of all links, others may come back as much later than we as they pause between two tries, and a look takes its time. */
const UP_MS = MOST_RETRY_MS + 150;

/** Whether a look can tell anything yet. @param upForMs how long our own link has been up */
export function mayJudge(upForMs: number): boolean {
  return upForMs >= UP_MS;
}

/** @param missing what the last call returned. @returns who has died, and who is to be looked at again */
export function judge(missing: Missing, look: Look): { readonly dead: readonly string[]; readonly missing: Missing } {
  const { at, self, silent, connected, upForMs } = look;
  // A list on which we are not ourselves, as behind a proxy that shares connections, says nothing of others.
  const tells = connected?.has(self) === true && mayJudge(upForMs);
  const absent = tells ? silent.filter((name) => !connected.has(name)) : [];
  const since = new Map(absent.map((name) => [name, missing.get(name) ?? at]));
  const dead = absent.filter((name) => at - (since.get(name) ?? at) >= APART_MS);
  return { dead, missing: since };
}
