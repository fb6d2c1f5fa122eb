/**
 * A full Redis takes no requests, and the gateway says so. Workers run and answer the queued
 * requests without an operator, also workers that start or reconnect meanwhile.
 */
import { afterEach, describe, expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { queued } from "../../support/queued.js";
import { nth } from "../pace.js";

const WAITING = 18;

describe("a Redis that is full while requests wait", () => {
  const served = useFleet({ models: ["simple"] });
  let waiting: Promise<Response>[];
  afterEach(async () => {
    await served.redis.config("SET", "maxmemory", "0");
    await served.redis.del("ballast");
    await expect.poll(() => readiness("ready")).toBe(200);
  });

  const worker = () => nth(served.fleet.workers, 0);
  const readiness = async (what: "ready" | "live") => (await fetch(`${served.url}/v2/health/${what}`)).status;
  function infer(n: number): Promise<Response> {
    const tensor = (name: string) => ({ name, datatype: "INT32", shape: [1, 16], data: Array(16).fill(n) });
    const body = JSON.stringify({ inputs: [tensor("INPUT0"), tensor("INPUT1")] });
    return fetch(`${served.url}/v2/models/simple/infer`, { method: "POST", body });
  }
  /** The gateway's log lines with this message. */
  const logged = (msg: string) =>
    nth(served.fleet.gateways, 0).member.process.lines.flatMap(({ fields }) => (fields["msg"] === msg ? [fields] : []));

  /** Queues requests while no worker takes any, and then fills Redis. */
  async function fill(): Promise<void> {
    waiting = Array.from({ length: WAITING }, (_, n) => infer(n));
    await expect.poll(() => queued(served.redis)).toBe(WAITING);
    expect(await readiness("ready")).toBe(200);
    // The gateway finds out by itself, since no client sends a request meanwhile.
    await served.redis.setrange("ballast", (16 << 20) - 1, "x");
    const used = Number(/used_memory:(\d+)/.exec(await served.redis.info("memory"))?.[1]);
    await served.redis.config("SET", "maxmemory", String(used - (8 << 20)));
    await expect(served.redis.set("more", "1")).rejects.toThrow(/^OOM/);
    await expect.poll(() => readiness("ready")).toBe(400);
  }

  async function expectDrained(): Promise<void> {
    const answers = await Promise.all(waiting);
    expect(answers.map(({ status }) => status)).toEqual(waiting.map(() => 200));
    for (const [n, answer] of answers.entries()) {
      const { outputs } = (await answer.json()) as { outputs: { name: string; data: number[] }[] };
      expect(outputs.find(({ name }) => name === "OUTPUT0")?.data).toEqual(Array(16).fill(2 * n));
    }
    expect(await queued(served.redis)).toBe(0);
    expect(await readiness("ready")).toBe(400);
  }

  it("is not ready, and refuses in words", { timeout: 120_000 }, async () => {
    await worker().kill();
    await fill();
    expect(await readiness("live")).toBe(200);
    const refused = await infer(0);
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(await refused.json()).toMatchObject({ code: "unavailable" });
    const refusals = () => logged("redis refuses writes: not ready, nothing can be admitted");
    await expect.poll(refusals).toMatchObject([{ error: expect.stringMatching(/^OOM/) as string }]);
    await worker().start();
    await expectDrained();

    await served.redis.del("ballast");
    await expect.poll(() => readiness("ready")).toBe(200);
    await expect.poll(() => logged("redis takes writes again: ready")).toHaveLength(1);
    expect((await infer(1)).status).toBe(200);
  });

  it("is drained by a worker that connects anew", { timeout: 120_000 }, async () => {
    worker().freeze();
    await fill();
    expect(served.fleet.lines.workerRedis.resetAll()).toBeGreaterThan(0);
    worker().thaw();
    await expectDrained();
  });

  it("is drained though it has forgotten its scripts and groups", { timeout: 120_000 }, async () => {
    await worker().kill();
    await fill();
    await served.redis.script("FLUSH");
    for (const key of await served.redis.keys("ready:*")) {
      const groups = (await served.redis.xinfo("GROUPS", key)) as unknown[][];
      for (const group of groups) await served.redis.xgroup("DESTROY", key, String(group[group.indexOf("name") + 1]));
    }
    await worker().start();
    await expectDrained();
  });
});
