/**
 * A Cluster with a dead master that is not replaced: requests at the other masters run undisturbed,
 * no matter which master died.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { encodeCorrelationId } from "#shared/contract/sequence.js";
import { bucketOf } from "#shared/queue/address.js";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import { registryKeys } from "#shared/queue/keys.js";
import { startFleet, type Fleet } from "../../support/fleet/fleet.js";
import { freePort } from "../../support/brokers/port.js";
import type { RunningProcess } from "../../support/brokers/process.js";
import { startRedisCluster, type RedisCluster } from "../../support/brokers/redis-cluster.js";
import { infoOf, type RedisNode } from "../../support/brokers/redis-node.js";
import { until } from "../../support/until.js";

const BUCKETS = 16;
const MODEL = "accumulate";
const IDS = Array.from({ length: 24 }, (_, i) => i + 1);
/**
 * A worker that hears nothing for a lease of one second would be declared dead well within this
 * time.
 */
const AWAY_MS = 3_000;
const PATIENCE_MS = 60_000;

interface Description {
  readonly workers: readonly unknown[];
  readonly unserved?: readonly { readonly buckets: readonly number[]; readonly reason: string }[];
}

/** The bucket in which a sequence lies. */
function bucketOfSequence(id: number): number {
  return bucketOf(MODEL, DEFAULT_TENANT, encodeCorrelationId({ kind: "uint64", value: BigInt(id) }), BUCKETS);
}

describe("a fleet over a Cluster with a dead master", () => {
  let cluster: RedisCluster;
  let fleet: Fleet;
  let processes: RunningProcess[];
  let url: string;
  beforeEach(async () => {
    const replicas = { "min-replicas-to-write": "1", "min-replicas-max-lag": "2" };
    cluster = await startRedisCluster({ "cluster-require-full-coverage": "no", ...replicas });
    fleet = await startFleet({ gateways: 0, workers: 0, models: [MODEL] });
    const port = String(await freePort());
    url = `http://127.0.0.1:${port}`;
    const env = { BATON_REDIS_URL: cluster.url, BATON_DURABILITY: "replicated" };
    processes = [
      fleet.launch("bundled/gateway/main.js", { ...env, BATON_HOST: "127.0.0.1", BATON_HTTP_PORT: port }),
      fleet.launch("worker/supervisor.js", env),
      fleet.launch("worker/supervisor.js", env),
    ];
    await until(async () => (await described()).workers.length === 2, PATIENCE_MS);
  }, 240_000);
  afterEach(async () => {
    await fleet.dispose();
    await cluster.dispose();
  });

  async function described(): Promise<Description> {
    const answer = await fetch(`${url}/v2/fleet`).catch(() => undefined);
    return answer?.ok === true ? ((await answer.json()) as Description) : { workers: [] };
  }

  /** Sends one step, under a key that makes a repeat safe. */
  function step(id: number, step: number): Promise<Response> {
    return fetch(`${url}/v2/models/${MODEL}/infer`, {
      method: "POST",
      headers: { "idempotency-key": `step-${step}` },
      body: JSON.stringify({
        parameters: { sequence_id: id, sequence_start: step === 1, sequence_end: false },
        inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }],
      }),
    });
  }

  /** Every step adds one, so the sum is the step's number. */
  async function expectSum(answer: Response, sum: number): Promise<void> {
    expect(answer.status).toBe(200);
    const { outputs } = (await answer.json()) as { outputs: { data: number[] }[] };
    expect(outputs[0]?.data).toEqual([sum]);
  }

  async function mayFailOver(master: RedisNode, may: boolean): Promise<void> {
    for (const { admin, port } of cluster.nodes) {
      if (port === master.port || Number(await infoOf(admin, "master_port")) !== master.port) continue;
      await admin.config("SET", "cluster-replica-no-failover", may ? "no" : "yes");
    }
  }

  const logged = (msg: string) => processes.flatMap(({ lines }) => lines).filter(({ fields }) => fields["msg"] === msg);

  it.each([
    ["that has the registry", registryKeys.workers],
    ["of other buckets", "other"],
  ])(
    "serves the sequences of the others, and declares nobody dead: the master %s",
    async (_, key) => {
      const registry = await cluster.masterOf(registryKeys.workers);
      const others = (await cluster.mastersNow()).filter((node) => node !== registry);
      const dead = key === "other" ? others[0] : registry;
      if (dead === undefined) throw new Error("a Cluster has several masters");
      const tags = Array.from({ length: BUCKETS }, (_, bucket) => bucketTag(bucket));
      const owners = await Promise.all(tags.map((tag) => cluster.masterOf(tag)));
      const away = owners.flatMap((owner, bucket) => (owner === dead ? [bucket] : []));
      const [lost, kept] = [true, false].map((is) => IDS.filter((id) => away.includes(bucketOfSequence(id)) === is));
      if (lost === undefined || kept === undefined || lost.length * kept.length === 0) throw new Error("other ids");
      for (const id of IDS) await expectSum(await step(id, 1), 1);

      await mayFailOver(dead, false);
      await dead.kill();
      const backAt = performance.now() + AWAY_MS;
      let steps = 1;
      do {
        steps++;
        for (const id of kept) await expectSum(await step(id, steps), steps);
      } while (performance.now() < backAt);
      expect((await fetch(`${url}/v2/health/ready`)).status).toBe(200);
      const unserved = async () => (await described()).unserved?.map((one) => [...one.buckets].sort((a, b) => a - b));
      await expect.poll(unserved).toEqual([away]);
      const refused = await step(lost[0] ?? 0, 2);
      // A step whose turn has not come within its time was not sent, and its client gets this
      // error.
      const code = expect.stringMatching(/^(outcome_unknown|unavailable)$/) as string;
      expect([refused.status, await refused.json()]).toMatchObject([503, { code }]);

      await dead.restart();
      await cluster.whenWhole();
      await until(async () => (await described()).unserved === undefined, PATIENCE_MS);
      for (const id of lost) await expectSum(await step(id, 2), 2);
      for (const id of kept) await expectSum(await step(id, steps + 1), steps + 1);
      expect(logged("a worker is gone; its steps are free")).toEqual([]);
      expect(logged("a part of redis takes no writes: requests of these buckets wait, the others go on")).not.toEqual(
        [],
      );
    },
    240_000,
  );
});
