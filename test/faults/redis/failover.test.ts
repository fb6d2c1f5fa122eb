/**
 * A process sees a primary die, freeze or hand over: its calls fail for a while, succeed when
 * repeated, and its blocking reads continue at the promoted replica.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Lane } from "#shared/queue/address.js";
import { laneKeys, registryKeys } from "#shared/queue/keys.js";
import { createGroup } from "#shared/queue/work/read/create-group.js";
import { lanesByKey, type Taken } from "#shared/queue/work/stream.js";
import { connectBlockingReader, connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { OwnConnection, serverOf } from "#shared/redis/own-connection.js";
import { retrying } from "#shared/retry.js";
import { Reader } from "../../../worker/lane/reader.js";
import { replaceables, startReplaceable, type Replaceable } from "../../support/brokers/redis-replaceable.js";
import { admit, applicant, LIMITS, onlyCall } from "../../support/queue/lab.js";
import { silentLog } from "../../support/silent.js";

/** A worker's reader of one lane. */
function startReader(url: string, lane: Lane, commands: RedisClient) {
  const redis = connectBlockingReader({ url, name: "w.1", log: silentLog }, { key: laneKeys(lane).ready, commands });
  const reader = new Reader({ redis, commands, consumer: "w.1", log: silentLog });
  const seen = new Set<string>();
  const accept = ({ deliveries }: Taken) => {
    for (const { request } of deliveries) seen.add(request);
  };
  reader.add({ lanes: lanesByKey([lane]), laneCount: 1, intake: { room: () => 8, accept } });
  return { seen, close: () => reader.stop() };
}

describe.each(replaceables)("the primary of %s", (kind) => {
  let place: Replaceable;
  let redis: RedisClient;
  /** A client that waits for a replica with each call. */
  let cautious: RedisClient;
  beforeAll(async () => {
    place = await startReplaceable(kind);
    redis = connectRedis({ url: place.url, name: "gw", log: silentLog });
    cautious = connectRedis({ url: place.url, name: "gw", durability: "replicated", log: silentLog });
    await Promise.all([redis, cautious].map((one) => whenReady(one, AbortSignal.timeout(60_000))));
  });
  afterAll(async () => {
    redis.disconnect();
    cautious.disconnect();
    await place.dispose();
  });

  it(
    "knows who is connected by the connections' names, and the promoted one by others",
    { timeout: 180_000 },
    async () => {
      const key = registryKeys.workers;
      const other = connectRedis({ url: place.url, name: "gone", log: silentLog });
      try {
        const own = new OwnConnection(redis, key, silentLog, () => undefined);
        const gone = new OwnConnection(other, key, silentLog, () => undefined);
        await expect.poll(() => [own.name, gone.name]).not.toContain(undefined);
        const [before, theirs] = [String(own.name), String(gone.name)];
        expect(await own.present([theirs])).toEqual(new Set([before, theirs]));
        other.disconnect();
        await expect.poll(() => own.present([theirs])).toEqual(new Set([before]));
        const former = await place.primaryOf(key);
        await former.kill();
        await place.whenReplaced(key, former);
        const now = async () => {
          // A Cluster's client looks for the new server of the slot only after a failed call.
          await retrying(() => redis.get(key), { budgetMs: 20_000 }).catch(() => undefined);
          return own.name === undefined ? undefined : serverOf(own.name);
        };
        await expect.poll(now).toMatch(/^\w+$/);
        expect(serverOf(String(own.name))).not.toBe(serverOf(before));
        expect(await own.present([])).toEqual(new Set([own.name]));
        await former.restart();
        await place.whenWhole();
      } finally {
        other.disconnect();
      }
    },
  );

  it.each(["is killed", "freezes", "hands over"])(
    "%s: calls succeed when they are repeated, and the blocking read goes on",
    async (how) => {
      const lane: Lane = { bucket: 0, model: how.replace(" ", "-"), version: "1", digest: "d" };
      const { ready } = laneKeys(lane);
      const admitted = (request: string, by = redis) => {
        const call = onlyCall(redis.isCluster ? lane.bucket : undefined);
        const attempt = () => admit(by, { gateway: "gw", limits: LIMITS }, [applicant(lane, request, "body")], call);
        return retrying(attempt, { budgetMs: 60_000 });
      };
      await retrying(() => createGroup(redis, lane), { budgetMs: 20_000 });
      const reader = startReader(place.url, lane, redis);
      try {
        await admitted("before");
        await expect.poll(() => [...reader.seen]).toContain("before");
        const former = await place.primaryOf(ready);
        if (how === "is killed") await former.kill();
        else if (how === "freezes") former.freeze();
        else await place.handOver(former);
        // The calls are repeated from before the failover until after it.
        const during = ["d1", "d2", "d3", "d4"].map((request) => admitted(request));
        // The promoted server may have no replica until the former primary is back.
        const confirmed = Array.from({ length: 32 }, (_, i) => admitted(`c${i}`, cautious));
        await place.whenReplaced(ready, former);
        for (const [admission] of await Promise.all(during)) expect(admission?.said).toBe("admitted");
        await admitted("after");
        await expect.poll(() => [...reader.seen]).toContain("after");
        if (how === "is killed") await former.restart();
        else if (how === "freezes") former.thaw();
        await place.whenWhole();
        for (const [admission] of await Promise.all(confirmed)) expect(admission?.said).toMatch(/^(admitted|known)$/);
        expect(await place.primaryOf(ready)).not.toBe(former);
        await admitted("healed");
        await expect.poll(() => [...reader.seen]).toContain("healed");
      } finally {
        await reader.close();
      }
    },
    180_000,
  );
});
