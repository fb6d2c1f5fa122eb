/** A fleet whose Redis loses its primary: the response cache gives right answers, or none. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cacheKeys } from "#shared/queue/keys.js";
import { models } from "../../cache/models.js";
import { freePort } from "../../support/brokers/port.js";
import { replaceables, startReplaceable, type Replaceable } from "../../support/brokers/redis-replaceable.js";
import { startFleet, type Fleet } from "../../support/fleet/fleet.js";
import { makeModels } from "../../support/fleet/made-model.js";
import { until } from "../../support/until.js";

const CLIENTS = 8;
const REQUESTS = 5;
/** A failover takes about three seconds, and a slow machine some more. */
const PATIENCE_MS = 60_000;

describe.each(replaceables)("a fleet that caches, over %s", (kind) => {
  let redis: Replaceable;
  let fleet: Fleet;
  let url: string;
  const repository = mkdtempSync(join(tmpdir(), "baton-cache-"));
  beforeAll(async () => {
    redis = await startReplaceable(kind);
    makeModels(repository, { picks: models["picks"] ?? expect.fail("there is such a model") });
    fleet = await startFleet({ gateways: 0, workers: 0, models: [], repository });
    const port = String(await freePort());
    url = `http://127.0.0.1:${port}`;
    const env = { BATON_REDIS_URL: redis.url, BATON_MODEL_REPOSITORY: repository };
    fleet.launch("bundled/gateway/main.js", { ...env, BATON_HOST: "127.0.0.1", BATON_HTTP_PORT: port });
    fleet.launch("worker/supervisor.js", env);
    await until(async () => (await pick(0).catch(() => undefined))?.status === 200, PATIENCE_MS);
  }, 240_000);
  afterAll(async () => {
    await fleet.dispose();
    await redis.dispose();
    rmSync(repository, { recursive: true });
  });

  async function pick(i: number): Promise<{ status: number; text: string }> {
    const indexes = Array.from({ length: i % 4 }, () => 1);
    const data = [...indexes, i % 3].slice(-4);
    const body = JSON.stringify({ inputs: [{ name: "I", datatype: "INT64", shape: [data.length, 1], data }] });
    const answer = await fetch(`${url}/v2/models/picks/infer`, { method: "POST", body });
    const text = await answer.text();
    if (answer.status === 200) {
      const { outputs } = JSON.parse(text) as { readonly outputs: readonly { readonly data: readonly number[] }[] };
      expect(outputs[0]?.data).toEqual(data.map((index) => 10 + index));
    }
    return { status: answer.status, text };
  }

  const hits = async (): Promise<number> => {
    const answer = await fetch(`${url}/v2/models/picks/stats`);
    if (answer.status !== 200) return -1;
    const { model_stats: all } = (await answer.json()) as {
      readonly model_stats: readonly { readonly inference_stats: { readonly cache_hit: { readonly count: number } } }[];
    };
    return all[0]?.inference_stats.cache_hit.count ?? -1;
  };

  it("answers each request rightly or asks its client to come back", { timeout: 4 * PATIENCE_MS }, async () => {
    const load = { isOver: false };
    const refusals = new Set<string>();
    const client = async (first: number) => {
      for (let i = first; !load.isOver; i++) {
        const { status, text } = await pick(i % REQUESTS);
        if (status !== 200) refusals.add(`${status} ${(JSON.parse(text) as { readonly code?: string }).code}`);
      }
    };
    const clients = Promise.all(Array.from({ length: CLIENTS }, (_, i) => client(i)));
    try {
      await until(async () => (await hits()) > 100, PATIENCE_MS);
      // In a Cluster the answers lie at three masters; elsewhere at the only one.
      const key = cacheKeys(kind === "a Cluster" ? 0 : undefined).used;
      const former = await redis.primaryOf(key);
      await former.kill();
      await redis.whenReplaced(key, former);
      await until(async () => (await pick(0)).status === 200, PATIENCE_MS);
      const since = await hits();
      await until(async () => (await hits()) > since + 100, PATIENCE_MS);
      await former.restart();
      await redis.whenWhole();
    } finally {
      load.isOver = true;
      await clients;
    }
    const expected = /^503 (unavailable|outcome_unknown|model_unavailable)$/;
    expect([...refusals].filter((one) => !expected.test(one))).toEqual([]);
  });
});
