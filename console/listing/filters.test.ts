import { describe, expect, it } from "vitest";
import { questionOf, type Filter } from "./filters.js";

const filters: readonly Filter<{ readonly model: string }>[] = [
  { name: "state", label: "State", options: ["queued"] },
  { name: "label", label: "Label", isWhole: (text) => text.includes(":") },
  { name: "q", label: "Model", fits: ({ model }, value) => model.includes(value) },
];

describe("questionOf", () => {
  it("sends the gateway its filters, and keeps the others here", () => {
    const { sent, fits } = questionOf(filters, { state: "queued", q: "ch", other: "x" });
    expect(sent).toEqual({ state: "queued" });
    expect(["chain", "simple"].map((model) => fits({ model }))).toEqual([true, false]);
  });

  it("leaves out empty filters and halves", () => {
    const { sent, fits } = questionOf(filters, { state: " ", label: "team" });
    expect(sent).toEqual({});
    expect(fits({ model: "simple" })).toBe(true);
  });

  it("has a name for each look", () => {
    const queries = [{}, { q: "a" }, { q: "b" }, { state: "a" }, { after: "a" }, { q: "a", after: "a" }];
    expect(new Set(queries.map((query) => questionOf(filters, query).name)).size).toBe(queries.length);
    expect(questionOf(filters, { label: "t" }).name).toBe(questionOf(filters, {}).name);
  });
});
