import { describe, expect, it } from "vitest";
import { announcementOf, servedModel } from "../../test/fixtures/served-models.js";
import { memoryOf } from "./totals.js";

const named = { name: "m", version: "1" };
const none = () => 0;

describe("the memory of a version", () => {
  it("is summed over the workers that serve it, by place", () => {
    const onCard = (gpu: number) =>
      servedModel("m", { weightBytes: 100, placement: { provider: "CUDAExecutionProvider", gpu } });
    const onCpu = servedModel("m", { weightBytes: 7, placement: { provider: "CPUExecutionProvider" } });
    const others = [servedModel("other", { weightBytes: 1_000 }), servedModel("m", { version: "2", weightBytes: 50 })];
    const workers = [[onCard(1)], [onCard(0)], [onCard(1), ...others], [onCpu]].map((models, i) => ({
      ...announcementOf(models),
      worker: `w.${i}`,
    }));
    expect(memoryOf(named, workers, (worker) => (worker === "w.2" ? 30 : 0))).toEqual([
      { type: "CPU", id: 0, byte_size: 37 },
      { type: "GPU", id: 0, byte_size: 100 },
      { type: "GPU", id: 1, byte_size: 200 },
    ]);
  });

  it("is unknown of workers of the version before, and of none", () => {
    expect(memoryOf(named, [announcementOf([servedModel("m")])], none)).toEqual([]);
    expect(memoryOf(named, [], none)).toEqual([]);
  });
});
