import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { FleetWatch } from "../../gateway/fleet/watch.js";
import { CALL_LIMITS } from "#shared/queue/admission/admit.js";
import { writeRefusal } from "#shared/queue/admission/write-refusal.js";
import { startRedis, type RedisServer } from "../support/brokers/redis.js";
import { silentLog } from "../support/silent.js";
import { until } from "../support/until.js";

/** A look follows each pause of 250 ms. */
const LOOKS_OF_A_SECOND = 4;

describe("writeRefusal", () => {
  let folder: string;
  let server: RedisServer;
  let redis: RedisClient;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "baton-refusal-"));
    server = await startRedis(folder);
    redis = connectRedis({ url: server.url, name: "gw", log: silentLog });
    await whenReady(redis, AbortSignal.timeout(60_000));
  });
  afterEach(async () => {
    redis.disconnect();
    await server.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Makes a snapshot fail: a file cannot replace a folder that is not empty. */
  async function failSnapshot(): Promise<void> {
    mkdirSync(join(folder, "redis", "dump.rdb", "taken"), { recursive: true });
    await redis.config("SET", "save", "3600 1");
    await redis.bgsave();
    await expect.poll(() => redis.info("persistence")).toMatch(/rdb_last_bgsave_status:err/);
  }

  it("says nothing, and writes nothing to the disk, while writes are taken", async () => {
    const size = async () => /aof_current_size:(\d+)/.exec(await redis.info("persistence"))?.[1];
    await redis.set("a", "b");
    const before = await size();
    for (let i = 0; i < 10; i++) expect(await writeRefusal(redis, "any")).toBeUndefined();
    expect(await size()).toBe(before);
  });

  it("gives the reason of a Redis that is full, cannot save, lacks replicas, or is a replica", async () => {
    await redis.config("SET", "maxmemory", "1");
    expect(await writeRefusal(redis, "any")).toMatch(/^OOM/);
    await redis.config("SET", "maxmemory", "0");
    await failSnapshot();
    expect(await writeRefusal(redis, "any")).toMatch(/^MISCONF/);
    await redis.config("SET", "save", "");
    expect(await writeRefusal(redis, "any")).toBeUndefined();
    await redis.config("SET", "min-replicas-to-write", "1");
    expect(await writeRefusal(redis, "any")).toMatch(/^NOREPLICAS/);
    await redis.config("SET", "min-replicas-to-write", "0");
    await redis.replicaof("127.0.0.1", "1");
    expect(await writeRefusal(redis, "any")).toMatch(/^READONLY/);
  });

  it("counts a Redis as full that has no room for a call of admission", async () => {
    const leave = async (bytes: number) => {
      const memory = await redis.info("memory");
      const [used = 0, apart = 0] = ["used_memory", "mem_not_counted_for_evict"].map((name) =>
        Number(new RegExp(`^${name}:(\\d+)`, "m").exec(memory)?.[1]),
      );
      await redis.config("SET", "maxmemory", String(used - apart + bytes));
    };
    const half = Buffer.alloc(CALL_LIMITS.bytes / 2);
    await leave(CALL_LIMITS.bytes / 4);
    expect(await writeRefusal(redis, "any")).toMatch(/^OOM/);
    await expect(redis.set("half", half)).rejects.toThrow(/^OOM/);
    await leave(CALL_LIMITS.bytes * 4);
    expect(await redis.set("half", half)).toBe("OK");
    expect(await writeRefusal(redis, "any")).toBeUndefined();
  });

  it("is found out by an idle gateway before the looks of a second are over, and its end by the next", async () => {
    const stop = new AbortController();
    const versions = vi.spyOn(redis, "get");
    /** How many looks asked only for the version before the gateway noticed. */
    const looks: number[] = [];
    const sink = new Writable({
      write(_line, _encoding, done) {
        looks.push(versions.mock.calls.length);
        versions.mockClear();
        done();
      },
    });
    try {
      // The first look is a whole look. A change right after a whole look is noticed latest.
      const fleet = await FleetWatch.start({ redis, buckets: 1, log: pino(sink) }, stop.signal);
      await redis.config("SET", "maxmemory", "1");
      await until(() => !fleet.canAdmit);
      await redis.config("SET", "maxmemory", "0");
      await until(() => fleet.canAdmit);
      expect(looks).toEqual([LOOKS_OF_A_SECOND - 2, 0]);
    } finally {
      stop.abort();
    }
  });

  it("is asked for by an idle gateway, which logs each change once", async () => {
    const lines: { level: number; msg: string; error?: string }[] = [];
    const sink = new Writable({
      write(line: Buffer, _encoding, done) {
        lines.push(JSON.parse(line.toString()) as (typeof lines)[number]);
        done();
      },
    });
    const stop = new AbortController();
    try {
      await redis.config("SET", "maxmemory", "1");
      // A gateway starts even at a full Redis, because ended requests can be read.
      const fleet = await FleetWatch.start({ redis, buckets: 1, log: pino(sink) }, stop.signal);
      expect(fleet.canAdmit).toBe(false);
      const refusals = async () => Number(/errorstat_OOM:count=(\d+)/.exec(await redis.info("errorstats"))?.[1]);
      const before = await refusals();
      await expect.poll(refusals).toBeGreaterThan(before + 2);
      await redis.config("SET", "maxmemory", "0");
      await expect.poll(() => fleet.canAdmit).toBe(true);
      await failSnapshot();
      await expect.poll(() => fleet.canAdmit).toBe(false);
      expect(lines.map(({ level, msg, error }) => [level, msg, error?.split(" ", 1)[0]])).toEqual([
        [40, "redis refuses writes: not ready, nothing can be admitted", "OOM"],
        [30, "redis takes writes again: ready", undefined],
        [40, "redis refuses writes: not ready, nothing can be admitted", "MISCONF"],
      ]);
    } finally {
      stop.abort();
    }
  });
});
