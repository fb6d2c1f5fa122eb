import type { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { laneKeys } from "#shared/keys.js";
import { startFleet, type Fleet } from "../setup/fleet.js";
import { nth } from "./pace.js";

const QUEUED = 18;
const { ready } = laneKeys({ model: "simple", version: "1", shard: 0 });

describe("a Redis that is full while requests wait", () => {
  let fleet: Fleet;
  let redis: Redis;
  let url: string;
  beforeAll(async () => {
    fleet = await startFleet({ gateways: 1, workers: 1, models: ["simple"] });
    redis = fleet.redis.connect();
    url = nth(fleet.urls, 0);
    await fleet.whenServing();
  });
  afterAll(async () => {
    redis.disconnect();
    await fleet.dispose();
  });

  const readiness = async (what: "ready" | "live") => (await fetch(`${url}/v2/health/${what}`)).status;
  function infer(n: number): Promise<Response> {
    const tensor = (name: string) => ({ name, datatype: "INT32", shape: [1, 16], data: Array(16).fill(n) });
    const body = JSON.stringify({ inputs: [tensor("INPUT0"), tensor("INPUT1")] });
    return fetch(`${url}/v2/models/simple/infer`, { method: "POST", body });
  }
  /** As many lines as the gateway has logged with this message. */
  const logged = (msg: string) =>
    nth(fleet.gateways, 0).member.process.lines.flatMap(({ fields }) => (fields["msg"] === msg ? [fields] : []));

  it("is not ready, and is drained by a worker that starts anew", { timeout: 120_000 }, async () => {
    const worker = nth(fleet.workers, 0);
    await worker.kill();
    const waiting = Array.from({ length: QUEUED }, (_, n) => infer(n));
    await expect.poll(() => redis.xlen(ready), { timeout: 10_000 }).toBe(QUEUED);
    expect(await readiness("ready")).toBe(200);

    // No request is sent meanwhile: the gateway finds out by itself.
    await redis.setrange("ballast", (16 << 20) - 1, "x");
    const used = Number(/used_memory:(\d+)/.exec(await redis.info("memory"))?.[1]);
    await redis.config("SET", "maxmemory", String(used - (8 << 20)));
    await expect(redis.set("more", "1")).rejects.toThrow(/^OOM/);
    await expect.poll(() => readiness("ready"), { timeout: 10_000 }).toBe(400);
    expect(await readiness("live")).toBe(200);
    const refused = await infer(0);
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(await refused.json()).toMatchObject({ code: "unavailable" });

    await worker.start();
    const answers = await Promise.all(waiting);
    expect(answers.map(({ status }) => status)).toEqual(waiting.map(() => 200));
    for (const [n, answer] of answers.entries()) {
      const { outputs } = (await answer.json()) as { outputs: { name: string; data: number[] }[] };
      expect(outputs.find(({ name }) => name === "OUTPUT0")?.data).toEqual(Array(16).fill(2 * n));
    }
    expect(await redis.xlen(ready)).toBe(0);
    expect(await readiness("ready")).toBe(400);
    const refusals = () => logged("redis refuses writes: not ready, nothing can be admitted");
    await expect.poll(refusals).toMatchObject([{ error: expect.stringMatching(/^OOM/) as string }]);

    await redis.del("ballast");
    await expect.poll(() => readiness("ready"), { timeout: 10_000 }).toBe(200);
    await expect.poll(() => logged("redis takes writes again: ready")).toHaveLength(1);
    expect((await infer(1)).status).toBe(200);
  });
});
