/**
 * The arguments of every queue operation of a worker: a connection, this worker's name in the
 * groups, and the lane or lanes to work on.
 */
import type { Delivery } from "../entry.js";
import { laneText, pinText, type Lane, type Pin } from "../address.js";
import { loadKeyOf } from "../pieces/load.js";
import { laneKeys, modelTag } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import { span } from "./entry-order.js";

/** The facts that all lanes of a model share. */
export interface WorkerQueue {
  readonly redis: RedisClient;
  /** Unique per process start, so that a restarted worker never passes for its former self. */
  readonly consumer: string;
  /** Whether its requests are streams: then each request has a log beside its outcome. */
  readonly streams?: boolean;
  /** Whether work that ends in the usual way takes short scripts; absent: true. */
  readonly shortScripts?: boolean;
  /** Limits of the requests that workers set aside, for each model and bucket. */
  readonly setAside?: { readonly entries: number; readonly ageMs: number };
}

/** A lane, for the worker that works on it. */
export interface LaneQueue extends WorkerQueue {
  readonly lane: Lane;
}

/** All lanes of a model version, a lane per bucket, for the worker that works on them. */
export interface ModelQueue extends WorkerQueue, Pin {
  readonly model: string;
  /** How many buckets the deployment has. */
  readonly buckets: number;
}

/** The queue of a generator. */
export interface StreamQueue extends ModelQueue {
  readonly streams: true;
}

/** All lanes of a model version, by bucket. */
export function lanesOf({ model, version, digest, buckets }: Omit<ModelQueue, keyof WorkerQueue>): Lane[] {
  return Array.from({ length: buckets }, (_, bucket) => ({ bucket, model, version, digest }));
}

/** A lane of a model version. */
export function inLane({ redis, consumer, streams = false }: WorkerQueue, lane: Lane): LaneQueue {
  return { redis, consumer, streams, lane };
}

/** The lanes of some entries, in the form that scripts take. */
export interface LaneTable {
  /** What builds a lane's keys, and the oldest and the newest of its entries. */
  readonly lanes: readonly (LaneArgs & { readonly oldest: string; readonly newest: string })[];
  /** The ready stream of each lane. */
  readonly ready: readonly string[];
  /** The key that counts the requests. In a Redis Cluster all lanes are of the same bucket. */
  readonly load: string;
  /** The number of an entry's lane, from 1. */
  readonly numberOf: (lane: Lane) => number;
}

/** The place of an entry. */
export type Located = Pick<Delivery, "lane" | "entry">;

export function laneTable(redis: RedisClient, located: readonly Located[]): LaneTable {
  const numbers = new Map<string, number>();
  const entries: { lane: Lane; entries: string[] }[] = [];
  for (const { lane, entry } of located) {
    const number = numbers.get(laneText(lane));
    if (number === undefined) numbers.set(laneText(lane), entries.push({ lane, entries: [entry] }));
    else entries[number - 1]?.entries.push(entry);
  }
  const lanes = entries.map((one) => {
    const [oldest, newest] = span(one.entries);
    return { ...laneArgs(one.lane), oldest, newest };
  });
  return {
    lanes,
    ready: entries.map(({ lane }) => laneKeys(lane).ready),
    load: loadKeyOf(redis, entries[0]?.lane.bucket ?? 0),
    numberOf: (lane) => numbers.get(laneText(lane)) ?? 0,
  };
}

/** The arguments from which scripts build a lane's keys. */
export interface LaneArgs {
  /** The tag of the lane's bucket, with the model. */
  readonly base: string;
  readonly pin: string;
}

export function laneArgs(lane: Lane): LaneArgs {
  return { base: modelTag(lane), pin: pinText(lane) };
}

/** Groups items by lane; the groups keep the order. */
export function byLane<Item extends { readonly lane: Lane }>(items: readonly Item[]): (readonly [Lane, Item[]])[] {
  const groups = new Map<string, readonly [Lane, Item[]]>();
  for (const item of items) {
    const name = laneText(item.lane);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [item.lane, [item]]);
    else group[1].push(item);
  }
  return [...groups.values()];
}

/**
 * Makes a call for each lane, in parallel.
 * @param call answers each of its items, in order
 * @returns the answers in the order of the items
 */
export async function ofEachLane<Item extends { readonly lane: Lane }, Answer>(
  items: readonly Item[],
  call: (lane: Lane, items: readonly Item[]) => Promise<readonly Answer[]>,
): Promise<Answer[]> {
  const answers = new Map<Item, Answer>();
  await Promise.all(
    byLane(items).map(async ([lane, some]) => {
      const said = await call(lane, some);
      for (const [i, answer] of said.entries()) {
        const item = some[i];
        if (item !== undefined) answers.set(item, answer);
      }
    }),
  );
  return items.map((item) => {
    const answer = answers.get(item);
    if (answer === undefined) throw new TypeError("a call left an item unanswered");
    return answer;
  });
}
