import { expect, it } from "vitest";
import { Cells } from "#shared/metrics/cells.js";
import { ModelCounts } from "./counts.js";

it("counts a model as busy for no more than the time that passes, with any number of instances", () => {
  const cells = new Cells();
  const counts = new ModelCounts({ model: "m", version: "1", instances: 4 }, cells);
  // All four run for a second, side by side.
  for (let i = 0; i < 4; i++) counts.batches?.ran(1, 0, 1_000);
  expect(cells.page()).toContain('baton_model_busy_seconds_total{model="m",version="1"} 1\n');
  expect(counts.report.work.busyMs).toBe(1_000);
  // The times of requests are whole.
  expect(counts.report.parts().find(({ subject }) => subject.includes("runs"))?.sums).toEqual([4, 0, 4_000_000, 0]);
});
