import { describe, expect, it } from "vitest";
import { pinOf } from "#shared/queue/address.js";
import { hasHeir, standingOf, type Serving } from "./standing.js";

const own = { name: "m", version: "1", digest: "a".repeat(64) };
const next = { name: "m", version: "2", digest: "b".repeat(64) };
const pin = { model: "m", ...pinOf(own), streams: false, maxIdleMs: undefined };
const fleet = (more: Partial<Serving>): Serving => ({ living: [], missed: [], left: [], ...more });

describe("where a pin stands", () => {
  it.each([
    ["served", "a living worker serves it", fleet({ living: [next, own] })],
    ["served", "one of several has left", fleet({ living: [own], left: [own] })],
    ["awaited", "its worker fell silent", fleet({ living: [next], missed: [own] })],
    ["awaited", "its worker left, and nobody else serves the model", fleet({ left: [own] })],
    ["retired", "its workers have left, and others serve the model", fleet({ living: [next], left: [own] })],
    ["forgotten", "nobody has served it for long", fleet({ living: [next] })],
    [
      "forgotten",
      "only other files are served under its version",
      fleet({ living: [{ ...own, digest: "c".repeat(64) }] }),
    ],
  ])("is %s where %s", (standing, _, serving) => {
    expect(standingOf(pin, serving)).toBe(standing);
  });
});

describe("an heir", () => {
  it.each([
    [["1"], true],
    [["*"], true],
    [["2", "3"], false],
    [undefined, false],
  ])("is a version that takes the states of %j: %s", (takesStatesOf, found) => {
    expect(hasHeir(pin, fleet({ living: [{ ...next, sequence: { takesStatesOf } }] }))).toBe(found);
  });

  it("must live, and be of the same model", () => {
    const heir = { ...next, sequence: { takesStatesOf: ["*"] } };
    expect(hasHeir(pin, fleet({ left: [heir], living: [{ ...heir, name: "n" }] }))).toBe(false);
  });
});
