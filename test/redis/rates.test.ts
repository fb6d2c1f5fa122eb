/** In a Redis Cluster a key sends nearly its burst at once, wherever its requests go. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Keys } from "../../gateway/auth/keys.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { keyedEnv, pepper, usualTerms } from "../auth/keyed.js";
import { ask, simpleBody } from "../jobs/ask.js";
import { clusterStore } from "../support/fleet/cluster-store.js";
import { startFleet, type Fleet } from "../support/fleet/fleet.js";
import type { Store } from "../support/fleet/store.js";
import { silentLog } from "../support/silent.js";

const BURST = 100;
const folder = mkdtempSync(join(tmpdir(), "baton-keys-"));
let store: Store;
let fleet: Fleet;
let redis: RedisClient;

beforeAll(async () => {
  writeFileSync(join(folder, "pepper"), `${pepper.toString("base64")}\n`, { mode: 0o600 });
  store = await clusterStore();
  const env = { ...keyedEnv(folder), BATON_AUTH_OPEN: "health,metadata" };
  fleet = await startFleet({ models: ["simple"], store, env });
  await fleet.whenServing();
  redis = connectRedis({ url: store.urls.gateway, name: "test", log: silentLog });
  await whenReady(redis, AbortSignal.timeout(60_000));
}, 120_000);
afterAll(async () => {
  redis.disconnect();
  await fleet.dispose();
  rmSync(folder, { recursive: true });
});

it.each([
  ["three times as many at once as it may", 3 * BURST],
  ["as many at once as it may", BURST],
])("of a key that sends %s, those admitted differ from its burst by a fifth at most", async (_, count) => {
  const limits = { requests_per_second: 0.001, burst: BURST };
  const { text } = await new Keys({ redis, pepper }).make({ ...usualTerms, limits });
  const headers = { authorization: `Bearer ${text}` };
  const [url = ""] = fleet.urls;
  const infer = () => ask(`${url}/v2/models/simple/infer`, { body: simpleBody(1), headers });
  const statuses = (await Promise.all(Array.from({ length: count }, infer))).map(({ status }) => status);
  expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
  const admitted = statuses.filter((status) => status === 200).length;
  expect(admitted).toBeLessThanOrEqual(1.2 * BURST);
  expect(admitted).toBeGreaterThanOrEqual(0.8 * BURST);
});
