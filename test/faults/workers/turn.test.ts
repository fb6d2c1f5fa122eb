/** A worker that dies or freezes with a model's turn does not keep the model from the others. */
import { describe, expect, it } from "vitest";
import { ask } from "../../edition/ask.js";
import { ownConfig } from "../../support/fleet/repository.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { readUntil } from "../../support/until.js";

const MODEL = "echo-int32";
const served = useFleet({
  workers: 3,
  models: [MODEL],
  configs: {
    [MODEL]: (ownConfig(MODEL) ?? "").replace(
      "dynamic_batching { }",
      "dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 20000 }",
    ),
  },
  env: { BATON_BUCKETS: "1" },
  direct: true,
});

/** The worker that has the turn now; waits until there is one. */
async function holder() {
  const find = async () => {
    const [key = ""] = await served.redis.keys("turn:*");
    const [held] = (await served.redis.xpending(key, "workers", "-", "+", 1)) as [string, string][];
    return served.fleet.workers.find(({ name }) => held?.[1].startsWith(`${name}.`) === true);
  };
  return (await readUntil(find, (found) => found !== undefined)) ?? expect.fail("a worker has the turn");
}

/** Requests of one after the other, and of four together. */
async function answers(): Promise<number[]> {
  const send = () =>
    ask(
      `${served.url}/v2/models/${MODEL}/infer`,
      { inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }] },
      { patienceMs: 60_000 },
    );
  const first = await send();
  const four = await Promise.all([send(), send(), send(), send()]);
  return [first, ...four].map(({ status }) => status);
}

const all200 = [200, 200, 200, 200, 200];

describe("a worker with the turn", () => {
  it("may be killed", { timeout: 120_000 }, async () => {
    expect(await answers()).toEqual(all200);
    const killed = await holder();
    await killed.kill();
    expect(await answers()).toEqual(all200);
    await killed.start();
    expect(await answers()).toEqual(all200);
  });

  it("may be frozen, and comes back as one of them", { timeout: 120_000 }, async () => {
    const frozen = await holder();
    frozen.freeze();
    expect(await answers()).toEqual(all200);
    frozen.thaw();
    expect(await answers()).toEqual(all200);
  });
});
