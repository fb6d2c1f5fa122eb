/** A step that finds no sequence gets the reason, in a fleet whose sequences are short-lived. */
import { expect, it } from "vitest";
import { ownConfig } from "../../support/fleet/repository.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { ask, step, TENANT_HEADER } from "./ask.js";

const IDLE_US = 300_000;
const served = useFleet({
  models: ["chain", "slow-sequence"],
  configs: {
    chain: (ownConfig("chain") ?? "").replace(
      /max_sequence_idle_microseconds: \d+/,
      `max_sequence_idle_microseconds: ${IDLE_US}`,
    ),
  },
  env: { BATON_TENANT_HEADER: TENANT_HEADER },
  direct: true,
});

const refusal = async (model: string, id: number) => {
  const { status, body } = await step(served.url, model, id, 1);
  return status === 200 ? "taken" : `${status} ${body.code} ${body.reason}`;
};

it("expired, before and after it is removed", async () => {
  await step(served.url, "chain", 1, 1, { start: true });
  const path = "chain/sequences/1";
  expect((await ask("GET", served.url, path)).body.step).toBe(1);
  await expect.poll(async () => (await ask("GET", served.url, path)).status).toBe(404);
  expect(await refusal("chain", 1)).toBe("400 sequence_start_required expired");
  const { redis } = served;
  await expect.poll(() => redis.keys("seqs:*:chain")).toEqual([]);
  expect(await refusal("chain", 1)).toBe("400 sequence_start_required expired");
  expect(await refusal("chain", 2)).toBe("400 sequence_start_required never_started");
});

it("cancelled, where its START did not take effect", async () => {
  const [worker] = served.fleet.workers;
  worker?.freeze();
  const start = await ask("POST", served.url, "slow-sequence/infer", {
    body: {
      parameters: { sequence_id: 3, sequence_start: true, timeout: 1_000 },
      inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [1] }],
    },
  });
  expect(start.body.code).toBe("expired");
  const behind = refusal("slow-sequence", 3);
  worker?.thaw();
  expect(await behind).toBe("400 sequence_start_required cancelled");
  await expect.poll(() => refusal("slow-sequence", 3)).toBe("400 sequence_start_required cancelled");
});
