import { describe, expect, it } from "vitest";
import type { ServedModel } from "#shared/contract/announcement.js";
import { LineLimits, mostLines } from "./line-limits.js";

describe("the lines of a model that are under way", () => {
  it.each([
    ["twice what workers have at once", 16, false, 32],
    ["half of it while clients wait", 16, true, 8],
    ["one at least", 1, true, 1],
    ["as many as others allow where workers do not say", undefined, true, Infinity],
  ] as const)("are %s", (_, taken, clientsWait, most) => {
    expect(mostLines(taken, clientsWait)).toBe(most);
  });
});

describe("the lines of a batch that are under way", () => {
  const modelOf = (name: string) => ({ name }) as ServedModel;
  const [simple, tale, slow] = [modelOf("simple"), modelOf("tale"), modelOf("slow")];
  const takes: Readonly<Record<string, number>> = { simple: 16, tale: 100, slow: 1 };
  const waited = new Set<string>();
  const limits = new LineLimits({
    takenAtOnce: ({ name }) => takes[name],
    clientsWait: (model) => waited.has(model),
  });

  it("are few until its models are known, then what these take, shared with other batches", () => {
    expect(limits.mostOf("a")).toBe(8);
    limits.begun("a", simple);
    limits.begun("a", simple);
    expect(limits.mostOf("a")).toBe(32);
    limits.begun("a", tale);
    expect(limits.mostOf("a")).toBe(232);
    limits.begun("b", simple);
    expect(limits.mostOf("a")).toBe(216);
    expect(limits.mostOf("b")).toBe(16);
    waited.add("tale");
    expect(limits.mostOf("a")).toBe(66);
    limits.ended("a", "tale");
    limits.ended("a", "simple");
    expect(limits.mostOf("a")).toBe(16);
    limits.ended("a", "simple");
    expect(limits.mostOf("a")).toBe(8);
    expect(limits.mostOf("b")).toBe(32);
  });

  it("are no more than a slow model takes, and one at least", () => {
    limits.begun("c", slow);
    expect(limits.mostOf("c")).toBe(2);
    waited.add("slow");
    expect(limits.mostOf("c")).toBe(1);
  });
});
