import { expect, it } from "vitest";
import { limitsOf } from "#shared/queue/admission/limits.js";
import { servedModel } from "../../test/fixtures/served-models.js";
import { queueFull } from "./queue-full.js";

const limits = { queue: 100, queueBytes: 1_000, totalBytes: 5_000, waitingPerSequence: 1, liveSequences: 7 };
const names = { models: ["m"], tenants: ["t"] };
const whose = { model: servedModel("m"), tenant: "t" };

it("leaves a tenth of the queue to others where a process admits no request that has a client", () => {
  expect(limitsOf(limits, names)).toMatchObject({ models: { m: [100, 1_000, 7] }, all: 5_000 });
  const left = limitsOf({ ...limits, leavesRoom: true }, names);
  expect(left).toMatchObject({
    models: { m: [90, 900, 7] },
    all: 4_500,
    jobs: { models: { m: [90, 900] }, all: 4_500 },
  });
});

it("says that a request is too large where it would never find room", () => {
  expect(queueFull("model-bytes", whose, 950, limits).code).toBe("queue_full");
  const never = queueFull("model-bytes", whose, 950, limits, true);
  expect(never).toMatchObject({ code: "payload_too_large", message: expect.stringContaining("nine tenths") as string });
  expect(queueFull("model-bytes", whose, 850, limits, true).code).toBe("queue_full");
});
