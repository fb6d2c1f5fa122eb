/** Gateways and workers whose Redis has replicas, while its primaries die. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startFleet, type Fleet } from "../../support/fleet/fleet.js";
import { freePort } from "../../support/brokers/port.js";
import { replaceables, startReplaceable, type Replaceable } from "../../support/brokers/redis-replaceable.js";
import { until } from "../../support/until.js";

const STEPS = 40;
/**
 * Before each of these steps the test kills a primary. In a Cluster the keys lie at three masters;
 * elsewhere at the only master.
 */
const KILLS: ReadonlyMap<number, string> = new Map([
  [10, "a"],
  [20, "b"],
  [30, "c"],
]);
/** A failover takes about three seconds, and a slow machine some more. */
const PATIENCE_MS = 60_000;

describe.each(replaceables)("a fleet over %s", (kind) => {
  let redis: Replaceable;
  let fleet: Fleet;
  let url: string;
  beforeAll(async () => {
    redis = await startReplaceable(kind, { "min-replicas-to-write": "1", "min-replicas-max-lag": "2" });
    fleet = await startFleet({ gateways: 0, workers: 0, models: ["accumulate", "gen-cheap"] });
    const port = String(await freePort());
    url = `http://127.0.0.1:${port}`;
    const env = { BATON_REDIS_URL: redis.url, BATON_DURABILITY: "replicated" };
    fleet.launch("bundled/gateway/main.js", { ...env, BATON_HOST: "127.0.0.1", BATON_HTTP_PORT: port });
    fleet.launch("worker/supervisor.js", env);
    fleet.launch("worker/supervisor.js", env);
    await until(async () => (await described()).workers.length === 2, PATIENCE_MS);
  }, 240_000);
  afterAll(async () => {
    await fleet.dispose();
    await redis.dispose();
  });

  async function described(): Promise<{ durability?: string; workers: unknown[] }> {
    const answer = await fetch(`${url}/v2/fleet`).catch(() => undefined);
    if (answer?.ok !== true) return { workers: [] };
    return (await answer.json()) as { durability: string; workers: unknown[] };
  }

  const post = (path: string, key: string, body: object) =>
    fetch(`${url}/v2/models/${path}`, {
      method: "POST",
      headers: { "idempotency-key": key },
      body: JSON.stringify(body),
    });

  function step(i: number): Promise<Response> {
    return post("accumulate/infer", `step-${i}`, {
      parameters: { sequence_id: 7, sequence_start: i === 1, sequence_end: i === STEPS },
      inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [i] }],
    });
  }

  /** Asks under the same key until the answer is no longer that Redis is away. */
  async function answered(ask: () => Promise<Response>): Promise<string> {
    const giveUpAt = performance.now() + PATIENCE_MS;
    for (;;) {
      const answer = await ask();
      const text = await answer.text();
      if (answer.status === 200) return text;
      if (answer.status < 500 || performance.now() > giveUpAt) throw new Error(`${answer.status} ${text}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  it("loses and doubles no step that was acknowledged", { timeout: 4 * PATIENCE_MS }, async () => {
    expect((await described()).durability).toBe("replicated");
    const generate = (key: string) => post("gen-cheap/generate", key, { text_input: "once", max_tokens: 5 });
    const replaced: Promise<void>[] = [];
    for (let i = 1, sum = 1; i <= STEPS; i++, sum += i) {
      const key = KILLS.get(i);
      if (key !== undefined) {
        const former = await redis.primaryOf(key);
        await former.kill();
        // The former primary comes back as a replica: without a replica the new primary would
        // refuse writes.
        replaced.push(redis.whenReplaced(key, former).then(() => former.restart()));
      }
      const { outputs } = JSON.parse(await answered(() => step(i))) as { outputs: { data: number[] }[] };
      expect(outputs[0]?.data).toEqual([sum]);
      if (KILLS.has(i + 1)) {
        await Promise.all(replaced);
        await redis.whenWhole();
        expect(JSON.parse(await answered(() => generate(`text-${i}`)))).toHaveProperty("text_output");
      }
    }
    await Promise.all(replaced);
  });
});
