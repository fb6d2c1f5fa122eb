import { describe, expect, it } from "vitest";
import { GROUP, laneKeys, registryKeys } from "#shared/queue/keys.js";
import { createGroup } from "#shared/queue/work/read/create-group.js";
import { delay } from "#shared/retry.js";
import { startRedis, type RedisServer } from "../../support/brokers/redis.js";
import { admit, applicant, LIMITS } from "../../support/queue/lab.js";
import { LabMember } from "../../support/queue/member.js";

const LEASE_MS = 1_000;
const lane = { bucket: 0, model: "m", version: "1", digest: "d" };

describe("a Redis that was away for longer than a lease", () => {
  it.each<[string, (server: RedisServer) => Promise<void>]>([
    ["frozen for 2 s", (server) => freeze(server, 2_000)],
    ["frozen for 4 s", (server) => freeze(server, 4_000)],
    ["killed, and started again", restart],
    ["killed, and started again after 2 s", (server) => restart(server, 2_000)],
  ])("lets nobody take over what its worker still holds: %s", async (_, away) => {
    const server = await startRedis();
    const members: LabMember[] = [];
    try {
      for (const name of ["a.1", "b.1", "c.1"]) {
        members.push(await LabMember.join({ url: server.url, lane }, name, { leaseMs: LEASE_MS }));
      }
      const [a] = members;
      if (a === undefined) throw new Error("three have joined");
      await createGroup(a.redis, lane);
      await admit(a.redis, { gateway: "gw", limits: LIMITS }, [applicant(lane, "r1", "r1")]);
      await a.read();
      a.holdings.take(a.holdings.waiting); // the request runs
      await delay(LEASE_MS * 1.5);
      await away(server);
      await delay(LEASE_MS * 2.5);
      const owner = await a.redis.xpending(laneKeys(lane).ready, GROUP, "-", "+", 1);
      expect(members.flatMap(({ reclaimed }) => reclaimed)).toEqual([]);
      expect(owner).toMatchObject([[expect.any(String), "a.1", expect.any(Number), 1]]);
      expect(await a.redis.zcard(registryKeys.workers)).toBe(3);
      expect(await a.redis.zcard(registryKeys.gone)).toBe(0);
    } finally {
      for (const member of members) await member.dispose();
      await server.dispose();
    }
  });
});

async function freeze(server: RedisServer, ms: number): Promise<void> {
  server.freeze();
  await delay(ms);
  server.thaw();
}

async function restart(server: RedisServer, ms = 0): Promise<void> {
  await server.kill();
  await delay(ms);
  await server.restart();
}
