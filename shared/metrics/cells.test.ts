import { describe, expect, it } from "vitest";
import { Cells } from "./cells.js";
import { linesOf } from "./text.js";

const model = { model: "m", version: "1" };

describe("a page", () => {
  it("has help and type once for each family, and 0 for what has not happened yet", () => {
    const cells = new Cells();
    const first = cells.counter("nv_inference_request_success", model);
    const exec = cells.counter("nv_inference_exec_count", model);
    const other = cells.counter("nv_inference_request_success", { model: "n", version: "2" });
    cells.add(first);
    cells.add(other, 2);
    cells.add(exec, 0);
    expect(cells.page()).toBe(
      "# HELP nv_inference_request_success Requests whose results were committed.\n" +
        "# TYPE nv_inference_request_success counter\n" +
        'nv_inference_request_success{model="m",version="1"} 1\n' +
        'nv_inference_request_success{model="n",version="2"} 2\n' +
        "# HELP nv_inference_exec_count Runs of the model.\n" +
        "# TYPE nv_inference_exec_count counter\n" +
        'nv_inference_exec_count{model="m",version="1"} 0\n',
    );
  });

  it("counts a histogram's values at and below each bound", () => {
    const cells = new Cells();
    const rows = cells.histogram("baton_batch_rows", model);
    for (const value of [1, 2, 3, 300]) cells.observe(rows, value);
    const lines = cells.page().split("\n");
    expect(lines.slice(2, 6)).toEqual([
      'baton_batch_rows_bucket{model="m",version="1",le="1"} 1',
      'baton_batch_rows_bucket{model="m",version="1",le="2"} 2',
      'baton_batch_rows_bucket{model="m",version="1",le="4"} 3',
      'baton_batch_rows_bucket{model="m",version="1",le="8"} 3',
    ]);
    expect(lines.slice(-4, -1)).toEqual([
      'baton_batch_rows_bucket{model="m",version="1",le="+Inf"} 4',
      'baton_batch_rows_sum{model="m",version="1"} 306',
      'baton_batch_rows_count{model="m",version="1"} 4',
    ]);
  });

  it("reads gauges anew, and sums those with equal labels", () => {
    const cells = new Cells();
    let bytes = 1;
    cells.show("baton_state_cache_bytes", model, () => bytes);
    cells.show("baton_state_cache_bytes", model, () => 10);
    bytes = 5;
    expect(cells.page()).toContain('baton_state_cache_bytes{model="m",version="1"} 15\n');
  });

  it("keeps its values while the array of cells grows", () => {
    const cells = new Cells();
    const names = Array.from({ length: 3_000 }, (_, i) => `m${i}`);
    const made = names.map((name) => cells.counter("nv_inference_count", { model: name, version: "1" }));
    for (const [i, cell] of made.entries()) cells.add(cell, i);
    const sum = Array.from(cells.page().matchAll(/^nv_inference_count.* (\d+)$/gm), ([, value]) => Number(value));
    expect(sum).toEqual(names.map((_, i) => i));
  });
});

describe("the series of a version", () => {
  it("are the same for whoever asks again, so no series is there twice", () => {
    const cells = new Cells();
    expect(cells.counter("nv_inference_count", model)).toBe(cells.counter("nv_inference_count", { ...model }));
    expect(cells.page().match(/^nv_inference_count/gm)).toHaveLength(1);
  });

  it("are those of `_other` beyond the limit", () => {
    const cells = new Cells(2);
    for (const name of ["a", "b", "c", "d", "a"]) {
      cells.add(cells.counter("nv_inference_count", cells.modelLabels(name, "1")));
    }
    expect(cells.page().split("\n").slice(2, -1)).toEqual([
      'nv_inference_count{model="a",version="1"} 2',
      'nv_inference_count{model="b",version="1"} 1',
      'nv_inference_count{model="_other",version=""} 2',
    ]);
  });

  it("leave the page when the version is forgotten, and begin with 0 later", () => {
    const cells = new Cells();
    cells.add(cells.counter("nv_inference_count", cells.modelLabels("m", "1")), 7);
    cells.forgetModel("m", "1");
    expect(cells.page()).toBe("");
    cells.counter("nv_inference_count", cells.modelLabels("m", "1"));
    expect(cells.page()).toContain('nv_inference_count{model="m",version="1"} 0\n');
  });

  it("do not come back with a late end of a version that is gone", () => {
    const cells = new Cells();
    cells.modelLabels("m", "1");
    expect(cells.labelsIfKnown("m", "1")).toEqual({ model: "m", version: "1" });
    cells.forgetModel("m", "1");
    expect(cells.labelsIfKnown("m", "1")).toEqual({ model: "_other", version: "" });
    expect(cells.labelsIfKnown("m", "1")).toEqual({ model: "_other", version: "" });
  });

  it("leave their place to another model, also in series that do not tell versions apart", () => {
    const cells = new Cells(1);
    const count = (model: string) => {
      const labels = { code: "unavailable", model: cells.modelName(model) };
      cells.add(cells.counter("baton_refusals_total", labels));
    };
    count("gone");
    count("m");
    expect(cells.page()).toContain('baton_refusals_total{code="unavailable",model="_other"} 1\n');
    cells.forgetName("gone");
    count("m");
    expect(cells.page()).toContain('baton_refusals_total{code="unavailable",model="m"} 1\n');
    expect(cells.page()).not.toContain("gone");
  });
});

it("a label has any text, in one line", () => {
  const family = { type: "counter", help: "", labels: ["model"] } as const;
  expect(linesOf("n", family, { model: 'a"b\\c\nd{}' })).toEqual(['n{model="a\\"b\\\\c\\nd{}"} ']);
  expect(linesOf("n", family, {})).toEqual(['n{model=""} ']);
});
