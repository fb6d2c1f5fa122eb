import { describe, expect, it } from "vitest";
import { families, sections, type Family } from "./families.js";

const all: readonly (readonly [string, Family])[] = Object.entries(families);
const own = all.filter(([name]) => !name.startsWith("nv_"));

describe("the families", () => {
  it("are in the documentation, each once", () => {
    const listed = Object.values(sections).flatMap((section) => Object.keys(section));
    expect(listed.toSorted()).toEqual(Object.keys(families).toSorted());
  });

  it("have names by Prometheus' rules, in base units", () => {
    for (const [name, { type }] of own) {
      expect(name).toMatch(/^baton_[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/);
      expect([name, name.endsWith("_total")]).toEqual([name, type === "counter"]);
      expect(name).not.toMatch(/_(?:ms|us|ns|kb|mb|percent)(?:_|$)/);
    }
  });

  it("have a sentence of help, and bounds in order if they are histograms", () => {
    for (const [name, { help, type, bounds }] of all) {
      expect([name, help]).toEqual([name, expect.stringMatching(/^[A-Z0-9][^\n|]*\.$/)]);
      expect([name, bounds === undefined]).toEqual([name, type !== "histogram"]);
      expect(bounds).toEqual(bounds?.toSorted((a, b) => a - b));
    }
  });
});
