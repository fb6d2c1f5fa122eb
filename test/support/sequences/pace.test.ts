import { describe, expect, it } from "vitest";
import { Pace } from "./pace.js";

describe("Pace", () => {
  it("lets steps go when their time has come", async () => {
    const begunAt = performance.now();
    await new Pace(100).reached(0.5);
    expect(performance.now() - begunAt).toBeGreaterThanOrEqual(48);
  });

  it("holds late steps back until their share is allowed", async () => {
    const pace = new Pace(0);
    const gone: number[] = [];
    pace.hold();
    const all = [0.2, 0.5, 0.9].map((share) => pace.reached(share).then(() => gone.push(share)));
    pace.allow(0.5);
    await Promise.all(all.slice(0, 2));
    expect(gone).toEqual([0.2, 0.5]);
    pace.allow(1);
    await Promise.all(all);
    expect(gone).toEqual([0.2, 0.5, 0.9]);
  });
});
