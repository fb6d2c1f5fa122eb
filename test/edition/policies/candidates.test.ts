/** `max_candidate_sequences`: a worker has steps of at most this many sequences at once. */
import { expect, it } from "vitest";
import { ownConfig } from "../../support/fleet/repository.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { ask } from "../ask.js";
import { buckets } from "../settings.js";

const CANDIDATES = 2;
const SEQUENCES = 12;
const own = ownConfig("slow-sequence") ?? "";

const served = useFleet({
  models: ["slow-sequence"],
  configs: { "slow-sequence": own.replace(/max_candidate_sequences: \d+/, `max_candidate_sequences: ${CANDIDATES}`) },
  env: buckets(4),
  workerEnv: { BATON_LOG_LEVEL: "debug" },
  direct: true,
});

it("runs no more sequences together than the model allows", { timeout: 120_000 }, async () => {
  const said = await Promise.all(
    Array.from({ length: SEQUENCES }, (_, i) =>
      ask(`${served.url}/v2/models/slow-sequence/infer`, {
        parameters: { sequence_id: i + 1, sequence_start: true },
        inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [20] }],
      }),
    ),
  );
  expect(said.map(({ status }) => status)).toEqual(Array(SEQUENCES).fill(200));
  const rows = () => {
    const lines = served.fleet.workers.flatMap(({ lives }) => lives.flatMap((life) => life.lines));
    return lines.filter(({ fields }) => fields["msg"] === "batch").map(({ fields }) => Number(fields["rows"]));
  };
  // A worker's line may come after the answer.
  await expect.poll(() => rows().reduce((sum, one) => sum + one, 0)).toBe(SEQUENCES);
  expect(Math.max(...rows())).toBeLessThanOrEqual(CANDIDATES);
});
