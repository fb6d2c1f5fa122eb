import { describe, expect, it } from "vitest";
import { announcementOf, servedModel } from "../../test/fixtures/served-models.js";
import { memoryOf } from "./totals.js";

const named = { name: "m", version: "1" };
const none = () => ({});

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
    const memory = memoryOf(workers, (worker) => (worker === "w.2" ? { "m/1": 30, "other/1": 5 } : none()));
    expect(memory({ name: "other", version: "1" })).toEqual([{ type: "CPU", id: 0, byte_size: 1_005 }]);
    expect(memory(named)).toEqual([
      { type: "CPU", id: 0, byte_size: 37 },
      { type: "GPU", id: 0, byte_size: 100 },
      { type: "GPU", id: 1, byte_size: 200 },
    ]);
  });

  it("is unknown of workers of the version before, and of none", () => {
    expect(memoryOf([announcementOf([servedModel("m")])], none)(named)).toEqual([]);
    expect(memoryOf([], none)(named)).toEqual([]);
  });

  it("takes one look at each model of each worker", () => {
    let looks = 0;
    const workers = Array.from({ length: 100 }, (_, i) => ({
      ...announcementOf(Array.from({ length: 20 }, (_, n) => servedModel(`m${n}`, { weightBytes: 1 }))),
      worker: `w.${i}`,
    })).map(({ models, ...more }) => ({
      ...more,
      get models() {
        looks++;
        return models;
      },
    }));
    const memory = memoryOf(workers, none);
    for (let n = 0; n < 20; n++) {
      expect(memory({ name: `m${n}`, version: "1" })).toEqual([{ type: "CPU", id: 0, byte_size: 100 }]);
    }
    expect(looks).toBe(100);
  });
});
