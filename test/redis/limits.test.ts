/**
 * In a Redis Cluster each bucket counts its own requests, and gateways compute each bucket's share
 * of a limit from the loads of all buckets. So a load in one bucket may use the whole limit, and
 * gateways without knowledge of each other stay near the limit.
 */
import { setMaxListeners } from "node:events";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { pinOf, type Lane } from "#shared/queue/address.js";
import { waitKey } from "#shared/queue/keys.js";
import { countHeld } from "#shared/queue/pieces/held.js";
import { endSequence } from "#shared/queue/sequences/end.js";
import { readAllLoads } from "#shared/queue/pieces/load.js";
import { admit } from "#shared/queue/admission/admit.js";
import type { CallNames, QueueLimits } from "#shared/queue/admission/limits.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { createGroup } from "#shared/queue/work/read/create-group.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { RequestBudget } from "../../gateway/admission/budget.js";
import { AdmissionBatcher } from "../../gateway/admission/batcher.js";
import { enqueue } from "../../gateway/admission/enqueue.js";
import { QueueLoads } from "../../gateway/admission/loads.js";
import { servedModel } from "../fixtures/served-models.js";
import { seededRandom } from "../support/fleet/random.js";
import { startRedisCluster, type RedisCluster } from "../support/brokers/redis-cluster.js";
import { IDLE_MS, oneLane, onlyCall, put, result, take, LIMITS } from "../support/queue/lab.js";
import { silentLog } from "../support/silent.js";

const BUCKETS = 16;
const LIMIT = 40;
/** Bytes of one model's requests; a sixth part is more than a bucket's share. */
const BYTES = 60_000;
const limits = { ...LIMITS, queue: LIMIT, queueBytes: BYTES, totalBytes: 50 * BYTES, waitingPerSequence: 1_000 };

let cluster: RedisCluster;
let redis: RedisClient;
let model: string;
let stop: AbortController;
let watching: Promise<unknown>[];
let models = 0;
beforeAll(async () => {
  cluster = await startRedisCluster();
  redis = connectRedis({ url: cluster.url, name: "limits", log: silentLog });
  await whenReady(redis, AbortSignal.timeout(60_000));
});
beforeEach(() => {
  model = `m${models++}`;
  stop = new AbortController();
  // The loops of several gateways listen to this signal.
  setMaxListeners(0, stop.signal);
  watching = [];
});
afterEach(async () => {
  stop.abort();
  await Promise.all(watching);
});
afterAll(async () => {
  redis.disconnect();
  await cluster.dispose();
});

const laneOf = (bucket: number): Lane => ({ bucket, model, ...pinOf(servedModel(model)) });

const loadsWithin = (most: QueueLimits) => new QueueLoads({ redis, limits: most, buckets: BUCKETS, log: silentLog });

interface AskTerms {
  readonly end?: boolean;
  readonly isJob?: boolean;
  readonly isGeneration?: boolean;
  readonly budget?: RequestBudget;
  readonly tenant?: string;
}

/** A gateway, as a function that admits a request and returns the answer. */
function gateway(name: string, loads = loadsWithin(limits)) {
  watching.push(loads.watch(stop.signal));
  const batcher = new AdmissionBatcher(redis, { gateway: name, limits, shares: loads, buckets: BUCKETS });
  const queue = {
    redis,
    batcher,
    loads,
    limits,
    buckets: BUCKETS,
    models: { pinned: () => undefined, heir: () => undefined },
    secret: () => Buffer.from("of the lab"),
    idempotencyTtlMs: 60_000,
  };
  const record = { type: "infer", options: "{}", shown: "{}", body: Buffer.alloc(5) };
  const job = { asked: "", labels: [], part: { keptMs: 60_000, record } };
  return async (
    bucket: number,
    request: string,
    sequence?: number,
    bytes = 5,
    { end = false, isJob = false, isGeneration = false, budget, tenant = DEFAULT_TENANT }: AskTerms = {},
  ): Promise<string> => {
    const asked = {
      model: servedModel(model),
      tenant,
      sequence:
        sequence === undefined
          ? undefined
          : { id: { kind: "uint64" as const, value: BigInt(sequence) }, start: request === "r0", end },
      idempotencyKey: undefined,
      deadlineMs: 60_000,
      budget,
      ...(isGeneration && { spec: {} }),
    };
    try {
      await enqueue(queue, {
        request: asked,
        address: { bucket, model, tenant, request: `${name}-${sequence ?? ""}-${request}` },
        encode: () => Buffer.alloc(bytes),
        under: () => asked,
        outcomeTtlMs: 60_000,
        attendedMs: 0,
        job: isJob ? job : undefined,
      });
      return "admitted";
    } catch (error) {
      return error instanceof Error && "code" in error ? String(error.code) : String(error);
    }
  };
}

/** The model's load over all buckets. */
async function counted(): Promise<number> {
  const all = await Promise.all(Array.from({ length: BUCKETS }, (_, bucket) => readAllLoads(redis, bucket)));
  return all.flat().reduce((sum, { field, requests }) => sum + (field === `m:${model}` ? requests : 0), 0);
}

const countOf = (said: readonly string[], word: string) => said.filter((one) => one === word).length;

it(
  "lets one bucket have the whole limit, and the steps of one sequence in their order",
  { timeout: 60_000 },
  async () => {
    const admitted = gateway("gw-one");
    const said = await Promise.all(Array.from({ length: 100 }, (_, i) => admitted(3, `r${i}`, 7)));
    expect(new Set(said)).toEqual(new Set(["admitted", "queue_full"]));
    expect(countOf(said, "admitted")).toBeLessThanOrEqual(LIMIT);
    // On a busy machine other buckets may answer too late, and then each has its part.
    let next = 100;
    const more = async () => {
      if ((await counted()) < LIMIT) await admitted(3, `r${next++}`, 7);
      return counted();
    };
    await expect.poll(more).toBe(LIMIT);

    // Another bucket may use the room that one bucket releases.
    await createGroup(redis, laneOf(3));
    const queue = oneLane(redis, laneOf(3), "a.1");
    const ran: number[] = [];
    for (let i = 0; i < 10; i++) {
      const steps = await take(queue);
      ran.push(...steps.map(({ request }) => Number(/\d+$/.exec(request)?.[0])));
      await commit(
        queue,
        steps.map((one) => result(one, put("s"))),
        IDLE_MS,
      );
    }
    expect(ran[0]).toBe(0);
    expect(ran).toEqual(ran.toSorted((a, b) => a - b));
    expect(ran).toHaveLength(10);
    expect(await counted()).toBe(LIMIT - 10);
    const others: string[] = [];
    // The gateway may know only the other bucket's earlier load.
    const asked = async () => {
      const tried = Array.from({ length: 20 }, (_, i) => admitted(4, `other${others.length + i}`));
      others.push(...(await Promise.all(tried)));
      return counted();
    };
    await expect.poll(asked, { interval: 200 }).toBe(LIMIT);
    expect(countOf(others, "admitted")).toBe(10);
    expect(await asked()).toBe(LIMIT);
  },
);

it(
  "keeps gateways that know nothing of each other near the limit, whatever the buckets",
  { timeout: 60_000 },
  async () => {
    const gateways = Array.from({ length: 4 }, (_, i) => gateway(`gw-many-${i}`));
    const said = await Promise.all(
      gateways.flatMap((admitted) => Array.from({ length: 10 * BUCKETS }, (_, i) => admitted(i % BUCKETS, `r${i}`))),
    );
    const sum = countOf(said, "admitted");
    expect(await counted()).toBe(sum);
    expect(sum).toBeGreaterThanOrEqual(LIMIT);
    expect(sum).toBeLessThanOrEqual(2 * LIMIT + BUCKETS);
  },
);

it.each<[of: string, most: QueueLimits, fillUp: (admitted: ReturnType<typeof gateway>, i: number) => Promise<string>]>([
  ["requests", limits, (admitted, i) => admitted(4, `r${i}`)],
  [
    "sequences",
    { ...limits, queue: 100, liveSequences: LIMIT },
    (admitted, i) => admitted(4, "r0", i, 5, { end: true }),
  ],
])(
  "keeps steps behind their START while it waits to hear of room, at the limit of %s",
  { timeout: 60_000 },
  async (_, most, fillUp) => {
    const loads = loadsWithin(most);
    const ask = loads.prepare.bind(loads);
    const hear = async (names: CallNames, freshMs?: number) => {
      for (let heard = ask(names, freshMs); heard !== undefined; heard = ask(names)) await heard;
    };
    const admitted = gateway(`gw-behind-${model}`, loads);
    let filled = 0;
    const isFull = async () => {
      await hear({ models: [model], tenants: [DEFAULT_TENANT] });
      const one = { model, tenant: DEFAULT_TENANT, bytes: 5, isJob: false };
      return !loads.hasRoom(most === limits ? "model-requests" : "sequences", one);
    };
    while (!(await isFull())) await fillUp(admitted, filled++);

    await createGroup(redis, laneOf(4));
    const queue = oneLane(redis, laneOf(4), "a.1");
    const later: Promise<string>[] = [];
    loads.prepare = async (names, freshMs) => {
      if (freshMs === undefined || later.length > 0) return hear(names, freshMs);
      // The START finds no room, and asks for the loads of the other buckets, which release room
      // meanwhile.
      later.push(admitted(3, "r2", 1_000_000));
      const over = (await take(queue)).map((one) => result(one, { action: "drop" }));
      await commit(queue, over, IDLE_MS);
      later.push(admitted(3, "r3", 1_000_000));
      await hear(names, 0);
    };
    const first = [admitted(3, "r0", 1_000_000), admitted(3, "r1", 1_000_000)];
    expect(await Promise.all(first)).toEqual(["admitted", "admitted"]);
    expect(await Promise.all(later)).toEqual(["admitted", "admitted"]);
    expect(later).toHaveLength(2);
    const waiting = await redis.lrange(waitKey(laneOf(3), "default:u1000000"), 0, -1);
    expect(waiting.map((step) => /1000000-r\d/.exec(step)?.[0])).toEqual(["r1", "r2", "r3"].map((r) => `1000000-${r}`));
  },
);

it("lets jobs fill nine tenths of a limit, also where they lie in one bucket", { timeout: 60_000 }, async () => {
  const admitted = gateway("gw-jobs");
  const said: string[] = [];
  for (let i = 0; i < LIMIT; i++) said.push(await admitted(5, `r${i}`, undefined, 5, { isJob: true }));
  expect([countOf(said, "admitted"), countOf(said, "queue_full")]).toEqual([0.9 * LIMIT, 0.1 * LIMIT]);
  const others: string[] = [];
  for (let i = 0; i < LIMIT; i++) others.push(await admitted(6, `o${i}`));
  expect(countOf(others, "admitted")).toBe(0.1 * LIMIT);
});

it("admits a request that is larger than a bucket's part, where there is room", { timeout: 60_000 }, async () => {
  const admitted = gateway("gw-large");
  const large = BYTES / 6;
  const said: string[] = [];
  for (let i = 0; i < 8; i++) said.push(await admitted(i, `r${i}`, undefined, large));
  expect(said).toEqual([...Array<string>(6).fill("admitted"), "queue_full", "queue_full"]);
});

it("gives each bucket its part where the others cannot be heard", { timeout: 60_000 }, async () => {
  const loads = loadsWithin(limits);
  const names = { models: [model], tenants: [DEFAULT_TENANT] };
  expect(loads.limitsOf(3, names).models[model]?.[0]).toBe(Math.ceil(LIMIT / BUCKETS));
  const one = { ...laneOf(3), lane: laneOf(3) };
  const body = { frame: Buffer.from("x"), digest: "", outcomeTtlMs: 60_000, deadlineMs: 60_000, attendedMs: 0 };
  const applicants = Array.from({ length: 5 }, (_, i) => ({
    lane: one.lane,
    tenant: DEFAULT_TENANT,
    request: `alone${i}`,
    sequence: undefined,
    ...body,
  }));
  const shares = Object.assign(loads, { prepare: () => undefined });
  const admitted = await admit(redis, { gateway: "gw", limits, shares }, applicants, onlyCall(3));
  if (admitted.said !== "answered") throw new Error(admitted.said);
  expect(admitted.admissions.map(({ said }) => said)).toEqual([
    "admitted",
    "admitted",
    "admitted",
    "queue-full",
    "queue-full",
  ]);
});

it("lets a rested owner send its burst, within a fifth, wherever the requests lie", async () => {
  const ask = gateway("rated", loadsWithin({ ...limits, queue: 10_000 }));
  const burst = 100;
  const rate = { name: "k:rated", scope: "key", counts: "requests", limit: 0.001, periodUs: 1e9, burst } as const;
  const random = seededRandom(7);
  const answers = await Promise.all(
    Array.from({ length: 3 * burst }, (_, i) => {
      const budget = new RequestBudget({ rates: [rate] });
      return ask(random.between(0, BUCKETS - 1), `r${i + 1}`, undefined, 5, { budget });
    }),
  );
  const admitted = answers.filter((answer) => answer === "admitted").length;
  expect(new Set(answers)).toEqual(new Set(["admitted", "rate_limit_exceeded"]));
  expect(Math.abs(admitted - burst)).toBeLessThanOrEqual(burst / 5);
});

it("lets an owner have its generations wherever they lie, and no more", { timeout: 60_000 }, async () => {
  const ask = gateway("talking", loadsWithin({ ...limits, queue: 10_000 }));
  const begin = (bucket: number, request: string) => {
    const budget = new RequestBudget({ rates: [], generations: [{ name: "k:talker", most: 6 }] });
    return ask(bucket, request, undefined, 5, { budget, isGeneration: true });
  };
  const said: string[] = [];
  for (let i = 0; i < 8; i++) said.push(await begin(5, `g${i}`));
  expect(countOf(said, "admitted")).toBeLessThanOrEqual(6);
  // On a busy machine other buckets may answer too late, and then each has its part.
  let next = 8;
  const more = async () => {
    if (countOf(said, "admitted") < 6) said.push(await begin(5, `g${next++}`));
    return countOf(said, "admitted");
  };
  await expect.poll(more).toBe(6);
  expect(new Set(said)).toEqual(new Set(["admitted", "stream_limit"]));
  await expect.poll(async () => begin(9, `g${next++}`)).toBe("stream_limit");
});

it("lets a tenant have its sequences of all models wherever they lie, and no more", { timeout: 60_000 }, async () => {
  const ask = gateway("holding", loadsWithin({ ...limits, queue: 10_000 }));
  const most = 6;
  let next = 0;
  const begin = (bucket: number) =>
    ask(bucket, "r0", next++, 5, { budget: new RequestBudget({ rates: [], liveSequences: most }), tenant: "holder" });
  const said: string[] = [];
  for (let i = 0; i < most + 2; i++) said.push(await begin(5));
  expect(countOf(said, "admitted")).toBeLessThanOrEqual(most);
  // On a busy machine other buckets may answer too late, and then each has its part.
  const more = async () => {
    if (countOf(said, "admitted") < most) said.push(await begin(5));
    return countOf(said, "admitted");
  };
  await expect.poll(more).toBe(most);
  expect(new Set(said)).toEqual(new Set(["admitted", "sequence_limit"]));
  await expect.poll(() => begin(9)).toBe("sequence_limit");
  model = `${model}-other`;
  await expect.poll(() => begin(9)).toBe("sequence_limit");
  model = model.slice(0, -"-other".length);

  await createGroup(redis, laneOf(5));
  const queue = oneLane(redis, laneOf(5), "a.1");
  const [ready] = await take(queue);
  if (ready?.sequence === undefined) throw new Error("nothing is ready");
  await endSequence(redis, { bucket: 5, model, name: ready.sequence });
  await commit(queue, [result(ready, put("s"))], IDLE_MS);
  await expect.poll(() => begin(9)).toBe("admitted");
  expect(await countHeld(redis, BUCKETS, "holder")).toBe(most);
});
