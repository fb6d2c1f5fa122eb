/**
 * The limits of the queue count every admitted request that has not left, over all buckets, in
 * requests and in bytes: ready, behind other steps, or running. A refusal names the limit.
 */
import type { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FleetPlan } from "../../support/fleet/fleet.js";
import { useFleet, type RunningFleet } from "../../support/fleet/use-fleet.js";
import { until } from "../../support/until.js";
import { add, ask, stepBody, type Said } from "../../edition/ask.js";
import { buckets } from "../../edition/settings.js";

const PATIENCE_MS = 120_000;
const models = ["accumulate", "simple"];
const planOf = (env: Record<string, string>): FleetPlan => ({
  gateways: 2,
  workers: 1,
  models,
  env: { ...buckets(16), ...env },
  direct: true,
});

interface Queue {
  readonly requests: number;
  readonly bytes: number;
  readonly models: readonly { readonly name: string; readonly requests: number; readonly bytes: number }[];
  readonly tenants: readonly { readonly name: string; readonly requests: number }[];
}

async function queueOf(url: string): Promise<Queue> {
  return ((await (await fetch(`${url}/v2/fleet`)).json()) as { queue: Queue }).queue;
}

function countOf(said: readonly Said[], status: number): number {
  return said.filter((one) => one.status === status).length;
}

/** Keeps the worker away meanwhile, so that admitted requests stay in the queue. */
async function whileHeld<T>({ fleet }: RunningFleet, act: () => Promise<T>): Promise<T> {
  const [worker] = fleet.workers;
  await worker?.kill();
  try {
    return await act();
  } finally {
    await worker?.start();
  }
}

/** Expects that no gateway and no key counts a request. */
async function expectNothingLeft(served: RunningFleet, redis: Redis): Promise<void> {
  await expect
    .poll(() => queueOf(served.url), { timeout: PATIENCE_MS })
    .toMatchObject({ requests: 0, bytes: 0, models: [], tenants: [] });
  await expect.poll(() => redis.keys("open:*"), { timeout: PATIENCE_MS }).toEqual([]);
}

/** Waits for this many answers, although the other requests may end later or fail. */
function answered(said: readonly unknown[], count: number): Promise<void> {
  return until(() => Promise.resolve(said.length >= count), PATIENCE_MS);
}

describe("a limit of 10 requests of a model", () => {
  const served = useFleet(planOf({ BATON_QUEUE_LIMIT: "10" }));
  let redis: Redis;
  beforeAll(() => void (redis = served.fleet.redis.connect()));
  afterAll(() => redis.disconnect());

  it("counts steps that wait behind others, at all gateways together", { timeout: 300_000 }, async () => {
    // 9 sequences with 65 steps each, of which one can be ready.
    const refused: Said[] = [];
    const asked: Promise<Said>[] = [];
    await whileHeld(served, async () => {
      for (let sequence = 1; sequence <= 9; sequence++) {
        for (let i = 0; i < 65; i++) {
          const url = served.fleet.urls[i % 2] ?? "";
          const step = add(url, { sequence, value: 1, start: true }, PATIENCE_MS);
          void step.then((said) => said.status === 503 && refused.push(said));
          asked.push(step);
        }
      }
      await answered(refused, 575);
      const queue = await queueOf(served.url);
      expect(queue.requests).toBe(10);
      expect(queue.models).toMatchObject([{ name: "accumulate", requests: 10 }]);
      expect(refused[0]).toMatchObject({
        code: "queue_full",
        error: "Exceeds maximum queue size: model 'accumulate' may have 10 requests in the queue (BATON_QUEUE_LIMIT)",
      });
    });
    const said = await Promise.all(asked);
    expect([countOf(said, 200), countOf(said, 503)]).toEqual([10, 575]);
    await expectNothingLeft(served, redis);
  });

  it("takes a request again that was refused, when there is room", { timeout: 300_000 }, async () => {
    const key = { "idempotency-key": "again" };
    const url = `${served.url}/v2/models/accumulate/infer`;
    const waiting = await whileHeld(served, async () => {
      const asked = Array.from({ length: 10 }, (_, i) =>
        add(served.url, { sequence: 100 + i, value: 1, start: true }, PATIENCE_MS),
      );
      await until(async () => (await queueOf(served.url)).requests === 10, PATIENCE_MS);
      for (let tries = 0; tries < 3; tries++) {
        expect(await ask(url, stepBody({ sequence: 7, value: 5, start: true }), { headers: key })).toMatchObject({
          status: 503,
          code: "queue_full",
        });
      }
      expect((await queueOf(served.url)).requests).toBe(10);
      return asked;
    });
    expect(countOf(await Promise.all(waiting), 200)).toBe(10);
    const again = async () =>
      (await ask(url, stepBody({ sequence: 7, value: 5, start: true }), { headers: key })).output;
    await expect.poll(again, { timeout: PATIENCE_MS }).toBe(5);
    await expectNothingLeft(served, redis);
  });

  it("is kept through a Redis that is killed, and nothing of it is left over", { timeout: 300_000 }, async () => {
    const asked = Array.from({ length: 60 }, (_, i) =>
      add(served.url, { sequence: 200 + i, value: 1, start: true }, PATIENCE_MS),
    );
    await served.fleet.redis.kill();
    await served.fleet.redis.restart();
    const said = await Promise.all(asked);
    expect(said.every(({ status }) => [200, 503].includes(status))).toBe(true);
    await expectNothingLeft(served, redis);
  });

  it("counts again what somebody's hand has changed", { timeout: 300_000 }, async () => {
    await redis.hset("load:all", "all", "10 1000", "m:accumulate", "10 1000", "t:nobody", "3 4");
    await expectNothingLeft(served, redis);
    expect((await add(served.url, { sequence: 300, value: 3, start: true, end: true })).output).toBe(3);
  });
});

describe("limits in bytes", () => {
  const LARGE = 200_000;
  const SMALL = 60_000;
  const bytes = { BATON_QUEUE_BYTES: String(5 * LARGE), BATON_TOTAL_QUEUE_BYTES: String(6 * LARGE) };
  const served = useFleet({
    ...planOf(bytes),
    models: [...models, "echo-int32"],
    serving: models,
    workerEnv: { BATON_MODELS: models.join(",") },
  });
  let redis: Redis;
  beforeAll(async () => {
    redis = served.fleet.redis.connect();
    // A gateway is ready only while some worker serves a model, whatever room the queue has.
    await served.fleet.addWorker({ BATON_MODELS: "echo-int32" });
  });
  afterAll(() => redis.disconnect());

  /** A request that takes a little more than this many bytes in the queue. */
  const large = (model: string, sequence: number, bytes = LARGE) => {
    const body = {
      ...stepBody({ sequence, value: 1, start: true, end: true, parameters: { note: "x".repeat(bytes) } }),
    };
    return ask(`${served.url}/v2/models/${model}/infer`, body, { patienceMs: PATIENCE_MS });
  };
  const ready = async () => (await fetch(`${served.url}/v2/health/ready`)).status;

  it("refuse in words, and say that the gateway is not ready while nothing fits", { timeout: 300_000 }, async () => {
    const first: Said[] = [];
    const asked: Promise<Said>[] = [];
    const note = (said: Promise<Said>) => {
      asked.push(said);
      void said.then((one) => one.status === 503 && first.push(one));
    };
    await whileHeld(served, async () => {
      for (let i = 0; i < 8; i++) note(large("accumulate", i + 1));
      await answered(first, 4);
      expect(first[0]).toMatchObject({
        code: "queue_full",
        error: `Exceeds maximum queue size: model 'accumulate' may have ${5 * LARGE} bytes of requests in the queue (BATON_QUEUE_BYTES)`,
      });
      expect(await ready()).toBe(200);
      const other = simpleOf(served.url, LARGE);
      asked.push(other);
      await until(async () => (await queueOf(served.url)).requests === 5, PATIENCE_MS);
      const full = await simpleOf(served.url, 2 * LARGE);
      expect(full).toMatchObject({ status: 503, code: "queue_full" });
      expect(full.error).toContain("all models together");
      // Small requests still find room, until the queue is full for them, too.
      expect(await ready()).toBe(200);
      for (let i = 0; i < 4; i++) note(simpleOf(served.url, SMALL));
      await answered(first, 5);
      expect(first[4]?.error).toContain("all models together");
      expect(await ready()).toBe(400);
      expect((await queueOf(served.url)).bytes).toBeLessThanOrEqual(6 * LARGE);
    });
    expect(countOf(await Promise.all(asked), 200)).toBe(5 + 3);
    await expect.poll(ready, { timeout: PATIENCE_MS }).toBe(200);
    await expectNothingLeft(served, redis);
  });

  it("say of a request that would never fit that it is too large", async () => {
    const { status, code, error } = await large("accumulate", 99, 5 * LARGE);
    expect({ status, code }).toEqual({ status: 413, code: "payload_too_large" });
    expect(error).toContain("BATON_QUEUE_BYTES");
    expect(await ready()).toBe(200);
  });
});

/** A request to `simple` of about this many bytes. */
function simpleOf(url: string, bytes: number): Promise<Said> {
  const tensor = (name: string) => ({ name, datatype: "INT32", shape: [1, 16], data: Array(16).fill(1) });
  const inputs = [tensor("INPUT0"), tensor("INPUT1")];
  const body = { parameters: { note: "x".repeat(bytes) }, inputs };
  return ask(`${url}/v2/models/simple/infer`, body, { patienceMs: PATIENCE_MS });
}

describe("a limit of a tenant's requests", () => {
  const served = useFleet(planOf({ BATON_TENANT_QUEUE_LIMIT: "4" }));

  it("holds over all models, and is named", { timeout: 300_000 }, async () => {
    const refused: Said[] = [];
    const asked: Promise<Said>[] = [];
    await whileHeld(served, async () => {
      for (let i = 0; i < 6; i++) {
        asked.push(add(served.url, { sequence: i + 1, value: 1, start: true }, PATIENCE_MS), simpleOf(served.url, 10));
      }
      for (const one of asked) void one.then((said) => said.status === 429 && refused.push(said));
      await answered(refused, 8);
      expect(refused[0]).toMatchObject({
        code: "tenant_limit",
        error: "tenant 'default' may have 4 requests in the queue (BATON_TENANT_QUEUE_LIMIT)",
      });
      expect((await queueOf(served.url)).tenants).toMatchObject([{ name: "default", requests: 4 }]);
    });
    expect(countOf(await Promise.all(asked), 200)).toBe(4);
  });
});

describe("a limit of live sequences", () => {
  const served = useFleet(planOf({ BATON_SEQUENCE_LIMIT: "5" }));

  it("counts those of all buckets", { timeout: 60_000 }, async () => {
    const said: Said[] = [];
    for (let i = 0; i < 8; i++) said.push(await add(served.url, { sequence: i + 1, value: 1, start: true }));
    expect([countOf(said, 200), countOf(said, 429)]).toEqual([5, 3]);
    await add(served.url, { sequence: 1, value: 1, end: true });
    expect((await add(served.url, { sequence: 9, value: 1, start: true })).status).toBe(200);
  });
});

describe("an Idempotency-Key whose result is gone", () => {
  const served = useFleet(planOf({ BATON_RESULT_BYTES: "1000" }));

  it("is answered in words, and its request is not run again", { timeout: 120_000 }, async () => {
    const first = () => add(served.url, { sequence: 1, value: 1, start: true, key: "first" });
    expect((await first()).output).toBe(1);
    // Redis keeps another result for each of these requests.
    for (let i = 0; i < 12; i++) await add(served.url, { sequence: 2, value: 1, start: true, key: `later-${i}` });
    await expect.poll(async () => (await first()).code, { timeout: PATIENCE_MS }).toBe("result_expired");
    expect(await first()).toMatchObject({ status: 410, error: expect.stringMatching(/not kept/) as string });
    expect((await add(served.url, { sequence: 1, value: 1 })).output).toBe(2);
  });
});
