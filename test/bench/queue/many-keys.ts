/** A deployment with very many keys: their memory, and the times of first uses and of lists. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { writeTenant } from "#shared/queue/owners/write-owner.js";
import { Keys } from "../../../gateway/auth/keys.js";
import { usualScopes, type Scope } from "../../../gateway/auth/owner/scopes.js";
import { heldTogether } from "../../support/brokers/resources.js";
import { startFleet } from "../../support/fleet/fleet.js";
import { silentLog } from "../../support/silent.js";
import { pause, type RowResult } from "./window.js";
import { median } from "../support/statistics.js";
import { benchPepper, keyedSettings } from "./limited-key.js";

export interface ManyKeysPlan {
  readonly folder: string;
  readonly keys: number;
}

export interface ManyKeysCost extends RowResult {
  /** Bytes of Redis's memory, tenants and lists included. */
  readonly bytesEach: number;
  /** What the memory of a gateway grew by while it saw a fifth of the keys, in MB. */
  readonly gatewayMb: number;
  /** Medians, in ms. */
  readonly firstUseMs: number;
  readonly knownMs: number;
  readonly pageMs: number;
}

/** As many keys as a tenant has. */
const KEYS_A_TENANT = 10;
const AT_ONCE = 64;
const TIMED = 500;
const PAGES = 50;
/** So many keys are seen in each of these times, in ms. */
const LOOKED_UP = 36;
const LOOK_UP_MS = 200;

export async function measureManyKeys(plan: ManyKeysPlan): Promise<ManyKeysCost> {
  const folder = mkdtempSync(join(plan.folder, "many-keys-"));
  const env = { ...keyedSettings(folder), BATON_DEFAULT_LIMITS: "{}" };
  const fleet = await startFleet({ gateways: 1, workers: 0, models: [], direct: true, env, folder });
  const redis = connectRedis({ url: fleet.redis.url, name: "bench", log: silentLog });
  try {
    await whenReady(redis, AbortSignal.timeout(60_000));
    const [gateway] = fleet.gateways;
    const url = gateway?.url ?? "";
    const pid = gateway?.member.process.pid ?? 0;
    const before = await memoryOf(redis);
    const texts = await makeKeys(redis, plan.keys);
    const bytesEach = ((await memoryOf(redis)) - before) / plan.keys;
    let [checked, wrong] = [0, 0];
    const asks = async (path: string, key: string): Promise<number> => {
      const begun = performance.now();
      const answer = await fetch(url + path, { headers: { authorization: `Bearer ${key}` } });
      await answer.arrayBuffer();
      checked++;
      if (answer.status !== 200) wrong++;
      return performance.now() - begun;
    };
    const timed = async (path: string, keys: readonly string[], everyMs = 0): Promise<number> => {
      const times = [];
      for (const key of keys) {
        times.push(await asks(path, key));
        await pause(everyMs);
      }
      return median(times);
    };
    const some = texts.slice(0, TIMED);
    const firstUseMs = await timed("/v1/models", some, LOOK_UP_MS / LOOKED_UP);
    const knownMs = await timed("/v1/models", some);
    const held = await heldTogether([pid]);
    // A gateway looks up 200 keys a second, and answers 503 beyond that.
    for (let from = TIMED; from < plan.keys / 5; from += LOOKED_UP) {
      await Promise.all(texts.slice(from, from + LOOKED_UP).map((key) => asks("/v1/models", key)));
      await pause(LOOK_UP_MS);
    }
    const { rssBytes } = await heldTogether([pid]);
    const operator = await keyOf(redis, "default", ["operator"]);
    const pageMs = await timed(
      "/v2/keys?limit=100",
      Array.from({ length: PAGES }, () => operator),
    );
    return {
      bytesEach,
      gatewayMb: (rssBytes - held.rssBytes) / 1e6,
      firstUseMs,
      knownMs,
      pageMs,
      checked,
      wrong,
      detail: `${plan.keys} keys of ${plan.keys / KEYS_A_TENANT} tenants; a gateway saw ${plan.keys / 5}`,
    };
  } finally {
    redis.disconnect();
    await fleet.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function keyOf(redis: RedisClient, tenant: string, scopes: readonly Scope[]): Promise<string> {
  const terms = { tenant, name: "", scopes, models: ["*"], livesMs: undefined, createdBy: undefined };
  return (await new Keys({ redis, pepper: benchPepper }).make(terms)).text;
}

async function makeKeys(redis: RedisClient, count: number): Promise<string[]> {
  const tenants = Array.from({ length: count / KEYS_A_TENANT }, (_, i) => `tenant-${i}`);
  await inTurn(tenants, (id) => {
    const to = JSON.stringify({ id, weight: 1, models: ["*"], limits: {}, state: "active", createdAt: 0 });
    return writeTenant(redis, id, { from: undefined, to });
  });
  const texts: string[] = [];
  await inTurn(
    Array.from({ length: count }, (_, i) => i),
    async (i) => {
      texts.push(await keyOf(redis, `tenant-${i % tenants.length}`, usualScopes));
    },
  );
  return texts;
}

/** Does the work for all, so many at a time. */
async function inTurn<T>(all: readonly T[], work: (one: T) => Promise<unknown>): Promise<void> {
  const waiting = [...all].reverse();
  const drive = async () => {
    for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) await work(one);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, drive));
}

async function memoryOf(redis: RedisClient): Promise<number> {
  await pause(500);
  return Number(/used_memory:(\d+)/.exec(await redis.info("memory"))?.[1]);
}
