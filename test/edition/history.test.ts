/** Workers resume a sequence that was rolled back, forked, or carried to another bucket. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { bucketOf, sequenceName } from "#shared/queue/address.js";
import { exportSequence } from "#shared/queue/sequences/export.js";
import { fork } from "#shared/queue/sequences/fork.js";
import { importSequence, stampForImport } from "#shared/queue/sequences/import.js";
import { rewind } from "#shared/queue/sequences/rewind.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { configWith } from "../support/fleet/repository.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { silentLog } from "../support/silent.js";
import { add, type Step } from "./ask.js";
import { buckets } from "./settings.js";

const BUCKETS = 16;
const IDLE_MS = 60_000;
const terms = { maxIdleMs: IDLE_MS, liveSequences: 100, buckets: BUCKETS };
const served = useFleet({
  workers: 2,
  models: ["accumulate"],
  configs: { accumulate: configWith("accumulate", "checkpoint_history", "4") },
  env: buckets(BUCKETS),
  direct: true,
});

let redis: RedisClient;
beforeAll(async () => {
  redis = connectRedis({ url: served.fleet.redis.url, name: "test", log: silentLog });
  await whenReady(redis, AbortSignal.timeout(60_000));
});
afterAll(() => redis.disconnect());

function address(sequence: number) {
  const bucket = bucketOf("accumulate", DEFAULT_TENANT, `u${sequence}`, BUCKETS);
  return { bucket, model: "accumulate", name: sequenceName(DEFAULT_TENANT, `u${sequence}`) };
}

/** The first sequence after `sequence` that lies in the same bucket, or in another bucket. */
function neighbour(sequence: number, same: boolean): number {
  const { bucket } = address(sequence);
  for (let id = sequence + 1; ; id++) if ((address(id).bucket === bucket) === same) return id;
}

const sum = async (step: Step, number: number) => {
  const said = await add(served.url, { ...step, parameters: { sequence_step: number } });
  return said.output ?? said;
};

it("says in the model's configuration what it keeps", async () => {
  const answer = await fetch(`${served.url}/v2/models/accumulate/config`);
  const config = (await answer.json()) as { readonly parameters: unknown };
  expect(config.parameters).toEqual({ checkpoint_history: { string_value: "4" } });
});

it("goes on from an earlier step", async () => {
  for (const [i, value] of [1, 10, 100, 1_000].entries()) {
    await sum({ sequence: 1, value, start: i === 0 }, i + 1);
  }
  expect(await rewind(redis, address(1), 2, IDLE_MS)).toMatchObject({ said: "rewound" });
  expect(await sum({ sequence: 1, value: 5 }, 3)).toBe(16);
  expect(await sum({ sequence: 1, value: 5 }, 4)).toBe(21);
});

it("goes on twice, in its own bucket and in another one", async () => {
  expect(await sum({ sequence: 100, value: 7, start: true }, 1)).toBe(7);
  const [near, far] = [neighbour(100, true), neighbour(100, false)];
  expect(await fork(redis, address(100), address(near).name, terms)).toMatchObject({ said: "forked" });
  const exported = await exportSequence(redis, address(100));
  if (exported.said !== "exported") throw new Error(exported.said);
  expect(await importSequence(redis, address(far), stampForImport(exported.sequence), terms)).toMatchObject({
    said: "imported",
  });
  expect(await sum({ sequence: near, value: 1 }, 2)).toBe(8);
  expect(await sum({ sequence: far, value: 2 }, 2)).toBe(9);
  expect(await sum({ sequence: 100, value: 3 }, 2)).toBe(10);
});

it("goes on after every worker was started anew: what it continues is in Redis", async () => {
  expect(await sum({ sequence: 500, value: 7, start: true }, 1)).toBe(7);
  expect(await sum({ sequence: 500, value: 7 }, 2)).toBe(14);
  expect(await rewind(redis, address(500), 1, IDLE_MS)).toMatchObject({ said: "rewound" });
  await Promise.all(served.fleet.workers.map((worker) => worker.restart()));
  await served.fleet.whenServing();
  expect(await sum({ sequence: 500, value: 1 }, 2)).toBe(8);
});
