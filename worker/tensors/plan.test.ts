import { describe, expect, it } from "vitest";
import { leastBusy, moveBeside, planBatch, type BatchLimits, type Candidate } from "./plan.js";

interface Named extends Candidate {
  readonly name: string;
}

function step(name: string, given: Partial<Candidate> = {}): Named {
  return { name, arrivedAt: 0, rows: 1, shapeKey: "x", sequence: undefined, expiresAt: Infinity, ...given };
}

function limits(given: Partial<BatchLimits> = {}): BatchLimits {
  return { maxBatchSize: 4, maxDelayMs: 5, preferred: [4], ...given };
}

const abc = [step("a"), step("b"), step("c")];

/** The plan's decision in one line: `run a b`, `wait 5`, `alone a`, `expire a`. */
function said(waiting: Named[], now: number, given: Partial<BatchLimits> = {}, suspects: Named[] = []): string {
  const plan = planBatch(waiting, suspects, now, limits(given));
  switch (plan.kind) {
    case "run":
      return `run ${plan.batch.map(({ name }) => name).join(" ")}`;
    case "expire":
      return `expire ${plan.expired.map(({ name }) => name).join(" ")}`;
    case "alone":
      return `alone ${plan.suspect.name}`;
    case "wait":
      return `wait ${plan.until}`;
  }
}

describe("planBatch", () => {
  it.each<[string, string, () => string]>([
    ["waits for ever with nothing to do", "wait Infinity", () => said([], 0)],
    ["waits for company until the oldest has waited its delay", "wait 5", () => said(abc, 4.9)],
    ["runs what there is once the delay is over", "run a b c", () => said(abc, 5)],
    [
      "counts the delay from the oldest, not the newest",
      "run a b",
      () => said([step("a"), step("b", { arrivedAt: 4 })], 5),
    ],
    ["runs at once when full", "run a b c d", () => said([...abc, step("d"), step("e")], 0)],
    ["runs at once without a delay", "run a", () => said([step("a")], 0, { maxDelayMs: 0 })],
    [
      "counts each request's own rows",
      "run a b",
      () => said([step("a", { rows: 2 }), step("b", { rows: 2 }), step("c")], 0),
    ],
    ["never splits a request", "run a", () => said([step("a", { rows: 3 }), step("b", { rows: 2 })], 0)],
    [
      "always takes the first, even if it alone is too large",
      "run a",
      () => said([step("a", { rows: 9 }), step("b")], 0),
    ],
    ["ends the batch at another shape", "run a", () => said([step("a"), step("b", { shapeKey: "y" }), step("c")], 0)],
    [
      "lets nothing overtake",
      "run a b",
      () => said([step("a"), step("b"), step("c", { shapeKey: "y" }), step("d")], 0),
    ],
    [
      "takes at most one step of a sequence",
      "run a",
      () => said([step("a", { sequence: "s" }), step("b", { sequence: "s" })], 0),
    ],
    [
      "mixes different sequences",
      "run a b",
      () => said([step("a", { sequence: "s" }), step("b", { sequence: "t" })], 5),
    ],
    ["runs one by one without batching", "run a", () => said(abc, 0, { maxBatchSize: 0, preferred: [] })],
    ["sends the largest preferred size it has", "run a b", () => said(abc, 1, { preferred: [1, 2, 4] })],
    ["holds less than any preferred size for the delay", "wait 5", () => said([step("a")], 1, { preferred: [2, 4] })],
    ["sends what is enough, of any size", "run a b c", () => said(abc, 1, { preferred: [], enough: 2 })],
    ["holds less than is enough for the delay", "wait 5", () => said([step("a")], 1, { preferred: [], enough: 2 })],
    ["sends any size after the delay", "run a b c", () => said(abc, 6, { preferred: [2, 4] })],
    [
      "splits off the preferred prefix without a delay",
      "run a b",
      () => said(abc, 0, { maxDelayMs: 0, preferred: [2, 4] }),
    ],
    ["runs a suspect alone, before anything else", "alone s", () => said(abc, 9, {}, [step("s"), step("t")])],
    [
      "rejects what is too late before the model sees it",
      "expire b",
      () => said([step("a"), step("b", { expiresAt: 3 })], 3),
    ],
    ["rejects a late suspect too", "expire s", () => said(abc, 3, {}, [step("s", { expiresAt: 2 })])],
    ["wakes for a deadline inside the delay", "wait 2", () => said([step("a", { expiresAt: 2 })], 1)],
  ])("%s", (_, expected, plan) => {
    expect(plan()).toBe(expected);
  });
});

describe("a sequence with a step under way", () => {
  const planned = (names: readonly string[]) => {
    const steps = names.map((name) => step(name, { sequence: name, expiresAt: 70 }));
    const plan = planBatch(steps, [], 9, limits(), new Set(["b"]));
    return plan.kind === "run" ? `${plan.batch.map(({ name }) => name).join(" ")} ${plan.closedBy}` : plan;
  };

  it("lets the steps of other sequences overtake its next step, which waits", () => {
    expect(planned(["a", "c", "b", "d"])).toBe("a c d delay");
    expect(planned(["b", "a"])).toBe("a delay");
    expect(planned(["b", "a", "c", "b", "d", "e"])).toBe("a c d e full");
    expect(planned(["b", "b"])).toEqual({ kind: "wait", until: 70 });
  });
});

describe("moveBeside", () => {
  const said = (waiting: Named[], posted: number | readonly number[], now = 0, suspects: Named[] = []) =>
    moveBeside(planBatch(waiting, suspects, now, limits()), [posted].flat()).kind;
  const full = [...abc, step("d")];

  it("stages a full batch behind the batch that runs, and no second one", () => {
    expect([said(full, 0), said(full, 1), said(full, 2)]).toEqual(["run", "run", "wait"]);
  });

  it("binds a batch that may grow only when the model is free, however long it has waited", () => {
    expect([said(abc, 0, 9), said(abc, 1, 9)]).toEqual(["run", "wait"]);
  });

  it("stages a batch that another shape ends", () => {
    expect(said([step("a"), step("b", { shapeKey: "y" })], 1)).toBe("run");
  });

  it("lets a suspect wait until the thread has no batch", () => {
    const suspects = [step("s")];
    expect([said(full, 0, 0, suspects), said(full, 1, 0, suspects)]).toEqual(["alone", "wait"]);
  });

  it("lets steps expire at once", () => {
    expect(said([step("a", { expiresAt: 1 })], 2, 1)).toBe("expire");
  });

  it("runs any batch on a free thread, and stages a full one if there is none", () => {
    expect([said(abc, [1, 0], 9), said(abc, [2, 0], 9), said(abc, [1, 1], 9)]).toEqual(["run", "run", "wait"]);
    expect([said(full, [1, 2]), said(full, [2, 2])]).toEqual(["run", "wait"]);
    expect([leastBusy([1, 0, 0]), leastBusy([2, 1]), leastBusy([1, 1])]).toEqual([1, 1, 0]);
  });

  it("lets a suspect wait until no thread has a batch", () => {
    const suspects = [step("s")];
    expect([said(full, [0, 1], 0, suspects), said(full, [0, 0], 0, suspects)]).toEqual(["wait", "alone"]);
  });
});
