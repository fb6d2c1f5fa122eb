import { afterEach, describe, expect, it } from "vitest";
import { FleetWatch } from "../../gateway/fleet/watch.js";
import { registryKeys } from "#shared/queue/keys.js";
import { announce } from "#shared/queue/work/liveness/announce.js";
import { bury } from "#shared/queue/work/liveness/bury.js";
import { announcementOf, servedModel } from "../fixtures/served-models.js";
import { useLab } from "../support/queue/lab.js";
import { silentLog } from "../support/silent.js";

/** The model `m` in a gateway's view. */
type Seen = "served" | "queues" | "unknown";

describe("a gateway's view of the fleet", () => {
  const lab = useLab();
  let stop = new AbortController();
  afterEach(async () => {
    stop.abort();
    await lab.redis.flushall();
  });
  const watch = async () => {
    stop = new AbortController();
    return FleetWatch.start({ redis: lab.redis, buckets: 1, log: silentLog }, stop.signal);
  };
  const join = (worker: string, leaseMs = 60_000, replaces?: string) =>
    announce(lab.redis, {
      announcement: { ...announcementOf([servedModel("m")]), worker, ...(replaces !== undefined && { replaces }) },
      leaseMs,
      connection: undefined,
      lanes: [],
    });
  const seen = ({ directory }: FleetWatch): Seen => {
    try {
      return directory.isServed(directory.find("m")) ? "served" : "queues";
    } catch {
      return "unknown";
    }
  };

  it("follows workers that join, leave, die and come back", async () => {
    const fleet = await watch();
    expect(seen(fleet)).toBe("unknown");
    await join("a");
    await expect.poll(() => seen(fleet)).toBe("served");
    await bury(lab.redis, "a", { why: "leaving" }, []);
    await expect.poll(() => seen(fleet)).toBe("queues");
    await join("a");
    await expect.poll(() => seen(fleet)).toBe("served");
    await bury(lab.redis, "a", { why: "ended" }, []);
    await expect.poll(() => seen(fleet)).toBe("queues");
    await lab.redis.zadd(registryKeys.gone, 1, "a");
    await join("b");
    await bury(lab.redis, "b", { why: "ended" }, []);
    await lab.redis.zadd(registryKeys.gone, 1, "b");
    await lab.redis.set(registryKeys.version, "changed");
    await expect.poll(() => seen(fleet)).toBe("unknown");
  });

  it("passes over a refusal that it cannot read", async () => {
    const noted = { reason: "bad", failed: [] };
    await lab.redis.hset(registryKeys.refusals, { a: "{", b: JSON.stringify({ why: 1 }), c: JSON.stringify(noted) });
    await join("a");
    const fleet = await watch();
    expect(seen(fleet)).toBe("served");
    expect([...fleet.control.refusals]).toEqual([["c", noted]]);
  });

  it("notices that the last worker has died though nobody is left to declare it dead", async () => {
    await join("a", 500);
    const fleet = await watch();
    expect(seen(fleet)).toBe("served");
    await expect.poll(() => seen(fleet)).toBe("queues");
  });

  it("comes back to a worker whose successor has died, until it leaves", async () => {
    await join("a");
    const fleet = await watch();
    const present = () => fleet.control.workers.map(({ worker }) => worker);
    const lately = () => fleet.control.lapsed.map(({ worker }) => worker);
    await join("b", 60_000, "a");
    await expect.poll(present).toEqual(["b"]);
    await bury(lab.redis, "b", { why: "ended" }, []);
    await expect.poll(present).toEqual(["a"]);
    expect(seen(fleet)).toBe("served");
    await bury(lab.redis, "a", { why: "leaving" }, []);
    await expect.poll(present).toEqual([]);
    expect(lately()).toEqual(["b"]);
  });

  it("forgets all when Redis is wiped, and knows it again when the workers are back", async () => {
    await join("a");
    const fleet = await watch();
    await lab.redis.flushall();
    await expect.poll(() => seen(fleet)).toBe("unknown");
    await join("a");
    await expect.poll(() => seen(fleet)).toBe("served");
  });

  it("reads the fleet only when it has changed, and mostly asks for its version alone", async () => {
    for (const worker of ["a", "b", "c"]) await join(worker);
    await watch();
    const reads = async () => {
      const stats = await lab.redis.info("commandstats");
      const calls = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
      return { versions: calls("get"), scripts: calls("evalsha_ro"), announcements: calls("hmget") };
    };
    const before = await reads();
    // A whole look reads the version, too, with two scripts, and follows two other looks.
    await expect.poll(async () => (await reads()).versions - before.versions).toBeGreaterThan(11);
    const after = await reads();
    expect(after.scripts - before.scripts).toBeGreaterThan(2);
    expect(after.scripts - before.scripts).toBeLessThan(11);
    expect(after.announcements).toBe(before.announcements);
  });
});
