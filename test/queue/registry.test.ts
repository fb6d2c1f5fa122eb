import { afterEach, describe, expect, it } from "vitest";
import type { ServedModel } from "#shared/contract/announcement.js";
import { pinOf } from "#shared/queue/address.js";
import { registryKeys } from "#shared/queue/keys.js";
import { changeVerbosity } from "#shared/queue/log-setting.js";
import { readFleet } from "#shared/queue/admission/read-fleet.js";
import { readMembers } from "#shared/queue/members.js";
import { announce } from "#shared/queue/work/liveness/announce.js";
import { bury } from "#shared/queue/work/liveness/bury.js";
import { graveOf } from "#shared/queue/work/liveness/graves.js";
import { heartbeat, type FleetNews } from "#shared/queue/work/liveness/heartbeat.js";
import { RedisClocks } from "#shared/redis/clock.js";
import { lanesOfNobodyElse } from "../../worker/upkeep/linger.js";
import { announcementOf, servedModel } from "../fixtures/served-models.js";
import { useLab, type Lab } from "../support/queue/lab.js";

const LEASE_MS = 60_000;

function useRegistry() {
  const lab = useLab();
  afterEach(() => lab.redis.flushall());
  const beat = (worker: string, silentMs = 0) =>
    heartbeat(lab.redis, { worker, leaseMs: LEASE_MS, silentMs, connection: undefined });
  /** A beat without questions. */
  const quiet = (worker: string, connection?: string) =>
    heartbeat(lab.redis, { worker, leaseMs: LEASE_MS, silentMs: undefined, connection });
  const join = (worker: string, leaseMs = LEASE_MS) =>
    announce(lab.redis, {
      announcement: { ...announcementOf([]), worker },
      leaseMs,
      connection: "server 1",
      lanes: [lab.lane],
    });
  return { lab, beat, quiet, join };
}

async function news(answer: ReturnType<typeof heartbeat>): Promise<FleetNews | undefined> {
  const said = await answer;
  return said.said === "noted" ? said.news : undefined;
}

describe("a heartbeat", () => {
  const { lab, beat, quiet, join } = useRegistry();

  it("is not noted of a worker that has not joined, and tells Redis's time all the same", async () => {
    expect(await beat("a")).toEqual({ said: "unknown", redisNow: expect.any(Number) });
    expect(await lab.redis.exists(registryKeys.workers)).toBe(0);
  });

  it("tells who asks how many live, and who was silent for how long", async () => {
    await join("a");
    await join("b");
    const logging = { verbosity: undefined };
    expect(await news(beat("a", LEASE_MS))).toEqual({ living: 2, silent: [], wish: 0, logging });
    const [b] = (await news(beat("a", -1)))?.silent.filter(({ worker }) => worker === "b") ?? [];
    expect(b).toEqual({ worker: "b", aliveUntil: expect.any(Number), connection: "server 1" });
    await expect.poll(async () => (await news(beat("a", 50)))?.silent.map(({ worker }) => worker)).toEqual(["b"]);
    await quiet("b", "server 2");
    const later = (await news(beat("a", -1)))?.silent.find(({ worker }) => worker === "b");
    expect(later?.connection).toBe("server 2");
    expect(later?.aliveUntil).toBeGreaterThan(b?.aliveUntil ?? Infinity);
  });

  it("tells nobody who does not ask, but of graves", async () => {
    await join("a");
    expect(await news(quiet("a"))).toBeUndefined();
    await bury(lab.redis, "b", { why: "ended" }, [lab.lane]);
    expect(await quiet("a")).toMatchObject({ graves: [graveOf("b", lab.lane)], news: { silent: [] } });
  });

  it("tells who asks how much all processes log", async () => {
    await join("a");
    await bury(lab.redis, "b", { why: "ended" }, [lab.lane]);
    for (const verbosity of [0, 3, undefined]) {
      await changeVerbosity(lab.redis, verbosity);
      expect((await news(beat("a", LEASE_MS)))?.logging).toEqual({ verbosity });
      expect((await readFleet(lab.redis)).verbosity).toBe(verbosity);
      expect((await news(quiet("a")))?.logging).toBeUndefined();
    }
  });

  it("names the newest graves among very many", async () => {
    await join("a");
    const lanes = Array.from({ length: 100 }, (_, bucket) => ({ ...lab.lane, bucket }));
    await bury(lab.redis, "b", { why: "ended" }, lanes);
    const newest = { ...lab.lane, bucket: 999 };
    await new Promise((resolve) => setTimeout(resolve, 5));
    await bury(lab.redis, "c", { why: "ended" }, [newest]);
    const answer = await quiet("a");
    const graves = answer.said === "noted" ? answer.graves : [];
    expect(graves).toContainEqual(expect.objectContaining(graveOf("c", newest)));
    expect(graves.length).toBeGreaterThan(8);
    expect(graves.length).toBeLessThanOrEqual(16);
    expect(new Set(graves.map(({ ready }) => ready)).size).toBe(graves.length);
  });

  it("is noted however soon it follows the last one", async () => {
    await join("a");
    const answers = await Promise.all(Array.from({ length: 200 }, () => quiet("a")));
    expect(new Set(answers.map(({ said }) => said))).toEqual(new Set(["noted"]));
  });

  it("is written neither to the disk nor to replicas", async () => {
    await join("a");
    const written = async () => Number(/master_repl_offset:(\d+)/.exec(await lab.redis.info("replication"))?.[1]);
    await lab.redis.config("SET", "appendonly", "yes");
    const size = async () => Number(/aof_current_size:(\d+)/.exec(await lab.redis.info("persistence"))?.[1]);
    const before = [await written(), await size()];
    for (let i = 0; i < 20; i++) await beat("a");
    expect([await written(), await size()]).toEqual(before);
    await quiet("a", "server 3");
    expect(await size()).toBeGreaterThan(before[1] ?? Infinity);
  });

  it("finds out that its announcement is gone", async () => {
    await join("a");
    await lab.redis.del(registryKeys.announcements);
    expect(await beat("a")).toMatchObject({ said: "unknown" });
  });
});

describe("a worker that is buried", () => {
  const { lab, beat, quiet, join } = useRegistry();

  it("is left alone if it has beaten since", async () => {
    const aliveUntil = (await join("a")).redisNow + LEASE_MS;
    await new Promise((resolve) => setTimeout(resolve, 5));
    await beat("a");
    expect(await bury(lab.redis, "a", { why: "silent", aliveUntil }, [lab.lane])).toBe(false);
    expect(await beat("a")).toMatchObject({ said: "noted", graves: [] });
  });

  it("is buried once, by whoever is first", async () => {
    const aliveUntil = (await join("a")).redisNow + LEASE_MS;
    const twice = [1, 2].map(() => bury(lab.redis, "a", { why: "silent", aliveUntil }, [lab.lane]));
    expect(await Promise.all(twice)).toEqual([true, false]);
    expect(await beat("a")).toMatchObject({ said: "unknown" });
  });

  it("is not brought back by a beat that comes late, over whatever connection", async () => {
    await join("a");
    await bury(lab.redis, "a", { why: "ended" }, [lab.lane]);
    const late = await Promise.all([quiet("a"), quiet("a", "server 9"), beat("a")]);
    expect(late.map(({ said }) => said)).toEqual(["unknown", "unknown", "unknown"]);
    const { workers, connections, graves } = registryKeys;
    expect(await lab.redis.exists(workers, connections)).toBe(0);
    expect(await lab.redis.zcard(graves)).toBe(1);
  });

  it("closes its graves when it joins again", async () => {
    await join("a");
    await bury(lab.redis, "a", { why: "ended" }, [lab.lane]);
    expect(await lab.redis.zcard(registryKeys.graves)).toBe(1);
    await join("a");
    expect(await lab.redis.zcard(registryKeys.graves)).toBe(0);
    expect(await beat("a")).toMatchObject({ said: "noted" });
  });

  it("leaves graves that know its last beat", async () => {
    await join("a");
    const { redisNow: last } = await quiet("b");
    await join("b");
    await expect.poll(async () => (await quiet("a")).redisNow).toBeGreaterThan(last + 20);
    await bury(lab.redis, "b", { why: "ended", leaseMs: LEASE_MS }, [lab.lane]);
    const answer = await quiet("a");
    const [grave] = answer.said === "noted" ? answer.graves : [];
    expect(grave?.seenAt).toBeGreaterThanOrEqual(last);
    expect(grave?.seenAt).toBeLessThan(last + 20);
  });

  it("goes on beating while it only leaves", async () => {
    await join("a");
    expect(await bury(lab.redis, "a", { why: "leaving" }, [lab.lane])).toBe(true);
    expect(await beat("a")).toMatchObject({ said: "noted", graves: [graveOf("a", lab.lane)] });
  });

  it("is no stray while it lives", async () => {
    await join("a");
    expect(await bury(lab.redis, "a", { why: "stray" }, [lab.lane])).toBe(false);
    expect(await bury(lab.redis, "b", { why: "stray" }, [lab.lane])).toBe(true);
  });
});

describe("what gateways read", () => {
  const { lab, beat, join } = useRegistry();
  const state = async ({ redis }: Lab) => {
    const { version, late, redisNow } = await readFleet(redis);
    const { living, gone } = await readMembers(redis, redisNow);
    return { version, late: [...late.keys()], living, gone: [...gone.keys()] };
  };

  it("has another version when a worker joins, leaves or dies, and when all is wiped, never else", async () => {
    const versions = [(await state(lab)).version];
    for (const change of [
      () => join("a"),
      () => bury(lab.redis, "a", { why: "leaving" }, []),
      () => join("a"),
      () => bury(lab.redis, "a", { why: "ended" }, []),
      () => lab.redis.flushall(),
      () => join("a"),
    ]) {
      await change();
      versions.push((await state(lab)).version);
    }
    for (const [i, version] of versions.entries()) expect(version).not.toBe(versions[i + 1]);
    await beat("a");
    expect((await state(lab)).version).toBe(versions.at(-1));
  });

  it("tells the living from the gone, and the late that nobody has declared dead", async () => {
    await join("a");
    await join("b");
    await join("c", -1);
    await bury(lab.redis, "b", { why: "leaving" }, []);
    expect(await state(lab)).toMatchObject({ living: expect.arrayContaining(["a", "b", "c"]), gone: ["b"] });
    await expect.poll(async () => (await state(lab)).late).toEqual(["c"]);
    await bury(lab.redis, "b", { why: "ended" }, []);
    expect(await state(lab)).toMatchObject({ living: ["c", "a"], gone: ["b"] });
    await join("b");
    expect((await state(lab)).gone).toEqual([]);
  });

  it("forgets what a worker served that went long ago", async () => {
    await join("old");
    await join("a");
    await bury(lab.redis, "old", { why: "ended" }, []);
    expect(await lab.redis.hexists(registryKeys.announcements, "old")).toBe(1);
    await lab.redis.zadd(registryKeys.gone, 1, "old");
    await bury(lab.redis, "a", { why: "ended" }, []);
    expect(await lab.redis.hkeys(registryKeys.announcements)).toEqual(["a"]);
    expect((await state(lab)).gone).toEqual(["a"]);
  });
});

describe("the lanes of a worker that was replaced", () => {
  const { lab } = useRegistry();
  const serving = (worker: string, models: ServedModel[], replaces?: string) =>
    announce(lab.redis, {
      announcement: { ...announcementOf(models), worker, ...(replaces !== undefined && { replaces }) },
      leaseMs: LEASE_MS,
      connection: undefined,
      lanes: [],
    });
  const old = servedModel("m", { digest: "old" });
  const lane = { bucket: 0, model: "m", ...pinOf(old) };
  const alone = async () => {
    const clocks = new RedisClocks(lab.redis);
    await clocks.read();
    return lanesOfNobodyElse({ redis: lab.redis, worker: "a.1", lanes: [lane], clocks });
  };

  it("are read by other workers of the old files, until their place is taken, too", async () => {
    await serving("a.1", [old]);
    await serving("b.1", [old]);
    await serving("a.2", [servedModel("m", { digest: "new" })], "a.1");
    expect(await alone()).toEqual([]);
    await serving("b.2", [servedModel("m", { digest: "new" })], "b.1");
    expect(await alone()).toEqual([lane]);
  });

  it("are read by its successor if the files are the same", async () => {
    await serving("a.1", [old]);
    await serving("a.2", [old], "a.1");
    expect(await alone()).toEqual([]);
    await bury(lab.redis, "a.2", { why: "leaving" }, []);
    expect(await alone()).toEqual([lane]);
  });
});
