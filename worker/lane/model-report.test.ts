import { describe, expect, it } from "vitest";
import { partsOfPage, type ReportField, type ReportPart } from "#shared/queue/pieces/report.js";
import { ModelReport } from "./model-report.js";
import { ProcessReports } from "#shared/queue/processes/reports.js";

const toRedis = (at: number) => 1_000_000 + at;

function sample() {
  const model = new ModelReport({ model: "m", version: "1" });
  const reports = new ProcessReports("w.1");
  reports.add(model);
  return { model, reports };
}

function partsOf(fields: readonly ReportField[]): ReportPart[] {
  return fields.flatMap(({ figures }) => partsOfPage(figures));
}

/** A run of one request. */
function run(model: ModelReport, rows: number, now: number): void {
  model.ran(rows, 1, 2);
  model.tookApart(rows, 3);
  model.succeeded(rows, now);
  model.took({ requestMs: 10, queueMs: 4, inputMs: 1, inferMs: 2, outputMs: 3 });
}

describe("the report of a beat", () => {
  it("has what has changed since Redis has answered, and is as rare as a flush should be", () => {
    const { model, reports } = sample();
    // The first has the number of pages alone, since the load of the worker lies before all pages.
    expect(reports.next(-1_000, { toRedis })).toEqual([{ field: "w.1", figures: "1" }]);
    reports.arrived();
    expect(reports.next(0, { toRedis })).toEqual([]);
    run(model, 2, 5);
    model.failed(7, 6);
    const first = reports.next(10, { toRedis });
    expect(first.map(({ field }) => field)).toEqual(["w.1 1", "w.1"]);
    expect(partsOf(first)).toEqual([
      {
        model: "m",
        version: "1",
        part: { of: "version" },
        last: 1_000_006,
        sums: [1, 1, 2, 1, 7_000, 10_000, 4_000, 1_000, 2_000, 3_000, 0],
      },
      {
        model: "m",
        version: "1",
        part: { of: "times", n: 0 },
        last: 0,
        sums: [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
      },
      { model: "m", version: "1", part: { of: "runs", n: 2 }, last: 0, sums: [1, 1_000, 2_000, 3_000] },
    ]);
    // Without an answer everything goes again.
    expect(reports.next(900, { toRedis })).toEqual([]);
    expect(reports.next(1_010, { toRedis })).toEqual(first);
    reports.arrived();
    expect(reports.next(2_010, { toRedis })).toEqual([]);
    model.failed(0, 7);
    const second = reports.next(2_011, { toRedis });
    expect(second.map(({ field }) => field)).toEqual(["w.1 1"]);
  });

  it("stays small, and brings everything in turns", () => {
    const { model, reports } = sample();
    run(model, 1, 1);
    reports.next(0, { toRedis });
    reports.arrived();
    const seen = new Map<string, string>();
    const parts = () => partsOf([...seen].map(([field, figures]) => ({ field, figures })));
    for (let rows = 1; rows <= 40; rows++) run(model, rows, rows);
    let beats = 0;
    for (; parts().length < 42 && beats < 100; beats++) {
      const fields = reports.next((beats + 1) * 1_000, { toRedis });
      const bytes = fields.reduce((sum, { field, figures }) => sum + field.length + figures.length, 0);
      expect(bytes).toBeLessThan(1_220);
      for (const { field, figures } of fields) seen.set(field, figures);
      reports.arrived();
      // A model that is always busy keeps no part from its turn, and brings no beat forward.
      run(model, 1, 100);
      expect(reports.next((beats + 1) * 1_000 + 999, { toRedis })).toEqual([]);
    }
    expect(parts().length).toBe(42);
    const rest = reports.next(100_000, { toRedis, isLast: true });
    expect(partsOf(rest)[0]?.sums[0]).toBe(41 + beats);
  });

  it("begins anew after a past that has it, and repeats itself to another server", () => {
    const { model, reports } = sample();
    run(model, 1, 1);
    reports.next(0, { toRedis });
    reports.arrived();
    reports.repeat();
    expect(partsOf(reports.next(1_100, { toRedis })).length).toBe(3);
    reports.arrived();
    reports.startAfterPast();
    expect(reports.hasReported).toBe(false);
    expect(reports.next(2_200, { toRedis })).toEqual([{ field: "w.1", figures: "1" }]);
    reports.arrived();
    expect(reports.parts().map(({ sums }) => sums[0])).toEqual([0, 0, 0]);
    run(model, 1, 2);
    const [version] = partsOf(reports.next(3_300, { toRedis }));
    expect(version?.sums[0]).toBe(1);
    reports.arrived();
    reports.startAfterPast();
    run(model, 1, 3);
    run(model, 1, 3);
    expect(partsOf(reports.next(4_400, { toRedis }))[0]?.sums[0]).toBe(2);
  });

  it("has no time that no clock has measured", () => {
    const { model, reports } = sample();
    model.took({ requestMs: Infinity, queueMs: NaN, inputMs: -5, inferMs: 1, outputMs: 0 });
    expect(partsOf(reports.next(0, { toRedis }))[0]?.sums).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 1_000, 0, 0]);
  });

  it("has the jobs that the worker holds now, also after its sums have become part of the past", () => {
    const { model, reports } = sample();
    const jobsIn = (now: number) =>
      partsOf(reports.next(now, { toRedis })).flatMap(({ part, sums }) => (part.of === "jobs" ? sums : []));
    model.holds(3);
    expect(jobsIn(1_000)).toEqual([3]);
    reports.arrived();
    reports.startAfterPast();
    model.holds(2);
    expect(jobsIn(2_000)).toEqual([2]);
    reports.arrived();
    model.holds(0);
    expect(jobsIn(3_000)).toEqual([0]);
  });

  it("tells that no jobs are held if Redis may have an older number", () => {
    const { model, reports } = sample();
    const jobsIn = (now: number) =>
      partsOf(reports.next(now, { toRedis })).flatMap(({ part, sums }) => (part.of === "jobs" ? sums : []));
    model.holds(3);
    expect(jobsIn(1_000)).toEqual([3]);
    // The answer is lost.
    model.holds(0);
    expect(jobsIn(2_000)).toEqual([0]);
    reports.arrived();
    reports.repeat();
    expect(jobsIn(3_000)).toEqual([0]);
  });
});
