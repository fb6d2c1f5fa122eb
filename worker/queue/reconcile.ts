/**
 * The typed wrappers of begin-round.lua, group-state.lua, requeue.lua, mend-sequence.lua and
 * reap-consumers.lua: repairs of what only outside interference can break.
 */
import { decodeEntry, type Delivery } from "#shared/contract/entry.js";
import { GROUP, laneKeys, reconcilerKey, sequenceKeys } from "#shared/keys.js";
import { bytes, defineScript, integer, list, text, word } from "#shared/redis/script.js";
import { ownerKey, type LaneQueue } from "./lane.js";

const beginRoundScript = defineScript(new URL("./begin-round.lua", import.meta.url), (reply) =>
  word(reply, ["begun", "taken"]),
);

const groupStateScript = defineScript(new URL("./group-state.lua", import.meta.url), (reply) => {
  if (reply === null) return undefined;
  const [length, oldest, newest, pending, oldestPending, last] = list(reply);
  return {
    length: integer(length),
    oldest: text(oldest),
    newest: text(newest),
    pending: integer(pending),
    oldestPending: text(oldestPending),
    last: text(last),
  };
});

const requeueScript = defineScript(new URL("./requeue.lua", import.meta.url), integer);

const mendScript = defineScript(new URL("./mend-sequence.lua", import.meta.url), (reply) => {
  const [said, request] = list(reply);
  return {
    said: word(said, ["sound", "mended", "gone"]),
    request: request === undefined || request === null ? undefined : text(request),
  };
});

const reapScript = defineScript(new URL("./reap-consumers.lua", import.meta.url), integer);

/** Whether this worker is the one that reconciles the lane in this round. */
export async function beginRound({ redis, lane, consumer }: LaneQueue, roundMs: number): Promise<boolean> {
  return (await beginRoundScript(redis, [reconcilerKey(lane)], [consumer, roundMs])) === "begun";
}

/** Entries that were delivered once, are pending with nobody, and still stand in the stream. */
export async function orphans({ redis, lane }: LaneQueue, limit: number): Promise<Delivery[]> {
  const { ready } = laneKeys(lane);
  const state = await groupStateScript(redis, [ready], [GROUP]);
  if (state === undefined) return [];
  const { length, oldest, newest, pending, oldestPending, last } = state;
  // Where all was delivered, all is pending, or some is lost. Where more is to come, the oldest
  // entry tells: one that is lost behind others becomes the oldest in time.
  const sound = isUpTo(newest, last)
    ? length === pending
    : !isUpTo(oldest, last) || (oldestPending !== "" && isUpTo(oldestPending, oldest));
  if (sound) return [];
  const standing = list(await redis.callBuffer("XRANGE", ready, "-", last, "COUNT", limit));
  const owned = list(await redis.callBuffer("XPENDING", ready, GROUP, "-", last, limit));
  const pendingIds = new Set(owned.map((row) => text(list(row)[0])));
  return standing.flatMap((item) => {
    const [id, fields] = list(item);
    const delivery = decodeEntry(bytes(id), list(fields).map(bytes));
    return delivery === undefined || pendingIds.has(delivery.entry) ? [] : [delivery];
  });
}

/** Whether a stream's id is not after another. */
export function isUpTo(id: string, other: string): boolean {
  const [ms = 0n, count = 0n] = id.split("-").map(BigInt);
  const [otherMs = 0n, otherCount = 0n] = other.split("-").map(BigInt);
  return ms === otherMs ? count <= otherCount : ms < otherMs;
}

export async function requeue({ redis, lane }: LaneQueue, deliveries: readonly Delivery[]): Promise<number> {
  const { ready, runs } = laneKeys(lane);
  const owners = deliveries.map((delivery) => ownerKey(lane, delivery));
  return requeueScript(redis, [ready, runs, ...owners], [GROUP, ...deliveries.map(({ entry }) => entry)]);
}

/** @returns the request whose step was lost, if one was. */
export async function mendSequence({ redis, lane }: LaneQueue, name: string): Promise<string | undefined> {
  const { ready, live } = laneKeys(lane);
  const { seq, state, wait } = sequenceKeys(lane, name);
  const { request } = await mendScript(redis, [ready, live, seq, state, wait], [name]);
  return request;
}

export function reapConsumers({ redis, lane }: LaneQueue, idleMs: number): Promise<number> {
  return reapScript(redis, [laneKeys(lane).ready], [GROUP, idleMs]);
}
