/** Who has a request in hand: a fault must strike the worker that runs the stream. */
import type { Redis } from "ioredis";
import { GROUP, laneKeys } from "#shared/keys.js";
import type { Member } from "../setup/member.js";
import { addressOf } from "./stored.js";

/** The request is the only one of its lane. */
export async function holderOf(redis: Redis, workers: readonly Member[], id: string): Promise<Member> {
  const pending = (await redis.xpending(laneKeys(addressOf(id).lane).ready, GROUP, "-", "+", 2)) as [string, string][];
  const [one, other] = pending;
  if (one === undefined || other !== undefined) throw new Error(`${pending.length} requests are in workers' hands`);
  // Consumers are named after their workers, with an id of each start behind.
  const holder = workers.find(({ name }) => one[1].startsWith(name));
  if (holder === undefined) throw new Error(`no worker is called ${one[1]}`);
  return holder;
}
