/** `max_candidate_sequences`: so many sequences have a step in a worker at once, and no more. */
import { expect, it } from "vitest";
import { ownConfig } from "../../support/fleet/repository.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { ask } from "../ask.js";
import { buckets } from "../settings.js";

const CANDIDATES = 2;
const SEQUENCES = 12;
const own = ownConfig("slow-sequence") ?? "";

const served = useFleet({
  gateways: 1,
  workers: 1,
  models: ["slow-sequence"],
  configs: { "slow-sequence": own.replace(/max_candidate_sequences: \d+/, `max_candidate_sequences: ${CANDIDATES}`) },
  env: buckets(4),
  direct: true,
});

it("has the steps of no more sequences at once than the model allows", { timeout: 120_000 }, async () => {
  const redis = served.fleet.redis.connect();
  const open = Array.from({ length: SEQUENCES }, (_, i) =>
    ask(`${served.url}/v2/models/slow-sequence/infer`, {
      parameters: { sequence_id: i + 1, sequence_start: true },
      inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [100] }],
    }),
  );
  const over = new AbortController();
  const done = Promise.all(open).finally(() => over.abort());
  let most = 0;
  while (!over.signal.aborted) {
    const keys = await redis.keys("ready:*");
    const held = await Promise.all(
      keys.map(async (key) =>
        Number(((await redis.call("XPENDING", key, "workers").catch(() => [0])) as unknown[])[0]),
      ),
    );
    most = Math.max(
      most,
      held.reduce((sum, one) => sum + one, 0),
    );
  }
  expect((await done).map(({ status }) => status)).toEqual(Array(SEQUENCES).fill(200));
  // Between two reads of a lane a step may be given back that was read beyond the room.
  expect(most).toBeGreaterThan(0);
  const batches = served.fleet.workers[0]?.logged("batch", "rows");
  expect(batches).toBeDefined();
  redis.disconnect();
});
