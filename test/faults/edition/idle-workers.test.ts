/**
 * Idle workers cost Redis next to nothing, although they hold requests and could serve many models.
 * Redis itself counts the commands, those inside scripts included.
 */
import type { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../../support/until.js";
import { nth } from "../pace.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { simple } from "../../edition/ask.js";
import { buckets } from "../../edition/settings.js";

const WORKERS = 2;
/** How many requests each worker holds. */
const HELD = 128;
/** The time over which commands are counted, on the clock of Redis. */
const WINDOW_MS = 6_000;

/** How many commands Redis executes in a second, on average over the window. */
async function commandsPerSecond(redis: Redis): Promise<number> {
  const look = async () => {
    const stats = await redis.info("commandstats");
    const [seconds, micros] = await redis.time();
    const calls = [...stats.matchAll(/:calls=(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
    return { calls, ms: Number(seconds) * 1_000 + Number(micros) / 1_000 };
  };
  const before = await look();
  await new Promise((resolve) => setTimeout(resolve, WINDOW_MS));
  const after = await look();
  return ((after.calls - before.calls) * 1_000) / (after.ms - before.ms);
}

describe("workers that hold requests and do nothing", () => {
  /** A batch that is never full, and that waits for more requests longer than this test lasts. */
  const patient = `
    name: "simple"
    backend: "onnxruntime"
    max_batch_size: ${2 * WORKERS * HELD}
    input [
      { name: "INPUT0" data_type: TYPE_INT32 dims: [ 16 ] },
      { name: "INPUT1" data_type: TYPE_INT32 dims: [ 16 ] }
    ]
    output [
      { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 16 ] },
      { name: "OUTPUT1" data_type: TYPE_INT32 dims: [ 16 ] }
    ]
    dynamic_batching { max_queue_delay_microseconds: 600000000 }`;
  const served = useFleet({
    workers: WORKERS,
    models: ["simple"],
    configs: { simple: patient },
    env: buckets(4),
    direct: true,
  });
  let redis: Redis;
  beforeAll(() => {
    redis = served.fleet.redis.connect();
  });
  afterAll(() => redis.disconnect());

  it("cost no more than workers that hold nothing", { timeout: 90_000 }, async () => {
    const { member: gateway } = nth(served.fleet.gateways, 0);
    gateway.freeze();
    const idle = await commandsPerSecond(redis);
    gateway.thaw();
    for (let i = 0; i < WORKERS * HELD; i++) void simple(served.url, i);
    await until(async () => (await deliveredEntries(redis)) >= WORKERS * HELD);
    gateway.freeze();
    const holding = await commandsPerSecond(redis);
    gateway.thaw();
    const perWorker = Math.round((holding - idle) / WORKERS);
    console.log(`commands a second: ${Math.round(idle)} idle, ${Math.round(holding)} holding ${WORKERS * HELD}`);
    // A worker looks at each of its lanes with work now and then.
    expect(perWorker, `more commands a second for each worker that holds ${HELD}`).toBeLessThan(40);
  });
});

describe("a worker that could serve ten models and has nothing to do", () => {
  const types = ["bool", "fp16", "fp32", "fp64", "int8", "int16", "int32", "int64", "uint8", "uint16"];
  const served = useFleet({ gateways: 0, models: types.map((type) => `echo-${type}`), env: buckets(16), direct: true });

  it("asks Redis 30 times a second at most, over a handful of connections", { timeout: 60_000 }, async () => {
    const redis = served.fleet.redis.connect();
    // Redis has had no queue yet, so in the first seconds each of the 160 lanes gets its group.
    await commandsPerSecond(redis);
    const commands = Math.round(await commandsPerSecond(redis));
    const connections = Number(/connected_clients:(\d+)/.exec(await redis.info("clients"))?.[1]) - 1;
    redis.disconnect();
    console.log(`an idle worker: ${commands} commands a second, ${connections} connections`);
    expect(commands).toBeLessThanOrEqual(30);
    expect(connections).toBeLessThanOrEqual(5);
  });
});

/** Counts the entries of all streams that workers hold. */
async function deliveredEntries(redis: Redis): Promise<number> {
  const keys = await redis.keys("ready:*");
  const groups = await Promise.all(keys.map((key) => redis.xinfo("GROUPS", key) as Promise<unknown[][]>));
  return groups.flat().reduce((sum, group) => sum + Number(group[group.indexOf("pending") + 1]), 0);
}
