/**
 * The typed wrappers of begin-round.lua, group-state.lua, requeue.lua, mend-sequence.lua and
 * reap-consumers.lua: repairs of what only outside interference can break.
 */
import { decodeEntry, type Delivery } from "#shared/contract/entry.js";
import { GROUP, laneKeys, reconcilerKey, sequenceKeys } from "#shared/keys.js";
import { bytes, defineScript, integer, list, text, word } from "#shared/redis/script.js";
import type { LaneQueue } from "./lane.js";

const beginRoundScript = defineScript(new URL("./begin-round.lua", import.meta.url), (reply) =>
  word(reply, ["begun", "taken"]),
);

const groupStateScript = defineScript(new URL("./group-state.lua", import.meta.url), (reply) => {
  if (reply === null) return undefined;
  const [length, ahead, pending, last] = list(reply);
  return { length: integer(length), ahead: text(ahead), pending: integer(pending), last: text(last) };
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
  const { length, ahead, pending, last } = state;
  // Redis knows how many entries are still ahead of the group unless deletions have blurred it.
  if (ahead !== "" && length - Number(ahead) === pending) return [];
  const standing = list(await redis.callBuffer("XRANGE", ready, "-", last, "COUNT", limit));
  const owned = list(await redis.callBuffer("XPENDING", ready, GROUP, "-", last, limit));
  const pendingIds = new Set(owned.map((row) => text(list(row)[0])));
  return standing.flatMap((item) => {
    const [id, fields] = list(item);
    const delivery = decodeEntry(bytes(id), list(fields).map(bytes));
    return delivery === undefined || pendingIds.has(delivery.entry) ? [] : [delivery];
  });
}

export async function requeue({ redis, lane }: LaneQueue, deliveries: readonly Delivery[]): Promise<number> {
  const { ready, runs } = laneKeys(lane);
  const owners = deliveries.map(({ sequence }) => (sequence === undefined ? ready : sequenceKeys(lane, sequence).seq));
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
