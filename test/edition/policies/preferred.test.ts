/** A batch of a preferred size does not come apart between the workers of a fleet. */
import { describe, expect, it } from "vitest";
import { ownConfig } from "../../support/fleet/repository.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { readUntil, until } from "../../support/until.js";
import { ask, type Said } from "../ask.js";

const SIZES = { fours: [4], "fours-eights": [4, 8] };
const MODEL = "echo-int32";
const BATCHES = 6;
/**
 * Longer than a request lives, in µs: a request whose batch has come apart would end as expired.
 */
const FOREVER_US = 600_000_000;

const configOf = (preferred: readonly number[]) =>
  (ownConfig(MODEL) ?? "").replace(
    "dynamic_batching { }",
    `dynamic_batching { preferred_batch_size: [ ${preferred.join(", ")} ] max_queue_delay_microseconds: ${FOREVER_US} }`,
  );

interface Stats {
  readonly inference_stats: { readonly success: { readonly count: number } };
  readonly batch_stats: readonly { readonly batch_size: number; readonly compute_infer: { readonly count: number } }[];
}

describe.each([
  { buckets: 1, preferred: SIZES.fours },
  { buckets: 16, preferred: SIZES.fours },
  { buckets: 1, preferred: SIZES["fours-eights"] },
])("three workers with $buckets buckets and the preferred sizes $preferred", ({ buckets, preferred }) => {
  const served = useFleet({
    workers: 3,
    models: [MODEL],
    configs: { [MODEL]: configOf(preferred) },
    env: { BATON_BUCKETS: String(buckets) },
    direct: true,
  });

  /** How many requests workers have taken and not ended. */
  const held = async (): Promise<number> => {
    const keys = await served.redis.keys("ready:*");
    const pending = await Promise.all(keys.map((key) => served.redis.xpending(key, "workers")));
    return pending.reduce<number>((sum, said) => sum + Number(said[0]), 0);
  };
  const send = (): Promise<Said> =>
    ask(
      `${served.url}/v2/models/${MODEL}/infer`,
      { inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }] },
      { patienceMs: 120_000 },
    );
  const statsOf = async (): Promise<Stats> => {
    const answer = await fetch(`${served.url}/v2/models/${MODEL}/stats`);
    const { model_stats: all } = (await answer.json()) as { readonly model_stats: readonly Stats[] };
    return all[0] ?? expect.fail("the model has statistics");
  };

  it("run batches of four of requests that come one after the other", { timeout: 120_000 }, async () => {
    for (let batch = 0; batch < BATCHES; batch++) {
      const said: Promise<Said>[] = [];
      for (let i = 1; i < 4; i++) {
        said.push(send());
        await until(async () => (await held()) === i);
      }
      said.push(send());
      expect((await Promise.all(said)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      await until(async () => (await held()) === 0);
    }
    const isSettled = ({ inference_stats: { success } }: Stats) => success.count === 4 * BATCHES;
    const { batch_stats: ran } = await readUntil(statsOf, isSettled);
    expect(ran.map(({ batch_size: size, compute_infer: { count } }) => [size, count])).toEqual([[4, BATCHES]]);
  });
});
