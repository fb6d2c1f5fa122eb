/** What Redis says of requests that append nothing for a while: an append would tell of a cancellation, but who waits for memory, or computes a long prompt, makes none. */
import type { RedisClock } from "#shared/redis/clock.js";
import type { Steadiness } from "../intake/steadiness.js";
import type { StreamQueue } from "../queue/lane.js";
import { isUnwanted, readStanding } from "../queue/progress.js";
import type { Active } from "./active.js";
import { heedsWanted } from "./wanted.js";

export interface Inspection {
  readonly queue: StreamQueue;
  readonly clock: RedisClock;
  readonly steadiness: Steadiness;
}

/** @returns those that have an outcome already, and those that nobody wants any more. @throws while Redis cannot be asked */
export async function inspect(
  { queue, clock, steadiness }: Inspection,
  silent: readonly Active[],
): Promise<{ readonly ended: Active[]; readonly unwanted: Active[] }> {
  const requests = silent.map(({ held }) => held.delivery.request);
  const standings = await readStanding(queue.redis, queue.lane, requests);
  const now = clock.toRedis(performance.now());
  const heed = heedsWanted(steadiness);
  const ended = silent.filter((_, i) => standings[i]?.state === "ended");
  const unwanted = silent.filter((_, i) => {
    const standing = standings[i];
    return standing !== undefined && standing.state !== "ended" && heed && isUnwanted(standing, now);
  });
  return { ended, unwanted };
}
