import { describe, expect, it } from "vitest";
import { judge, type Look, type Missing } from "./absence.js";

/** What is seen of worker b by worker a: whether it is silent, and whether it is connected. */
type Seen = "silent and gone" | "silent but there" | "heard of";

describe("judge", () => {
  const look = (at: number, seen: Seen, given: Partial<Look> = {}): Look => ({
    at,
    self: "a",
    silent: seen === "heard of" ? [] : ["b"],
    connected: new Set(seen === "silent and gone" ? ["a", "c"] : ["a", "b", "c"]),
    upForMs: 10_000,
    ...given,
  });
  const after = (looks: readonly Look[]) => {
    let missing: Missing = new Map();
    let dead: readonly string[] = [];
    for (const one of looks) ({ dead, missing } = judge(missing, one));
    return dead;
  };

  it.each<[string, Look[], string[]]>([
    ["one look is not enough", [look(0, "silent and gone")], []],
    ["two are", [look(0, "silent and gone"), look(100, "silent and gone")], ["b"]],
    ["two at once are as one", [look(0, "silent and gone"), look(20, "silent and gone")], []],
    [
      "and a third counts from the first",
      [look(0, "silent and gone"), look(50, "silent and gone"), look(100, "silent and gone")],
      ["b"],
    ],
    ["a link that is back is nobody's death", [look(0, "silent and gone"), look(100, "silent but there")], []],
    [
      "nor is one that is cut twice",
      [look(0, "silent and gone"), look(100, "silent but there"), look(200, "silent and gone")],
      [],
    ],
    ["who is heard of is alive", [look(0, "silent and gone"), look(100, "heard of"), look(200, "silent and gone")], []],
    [
      "who is frozen keeps its connection",
      [look(0, "silent but there"), look(100, "silent but there"), look(900, "silent but there")],
      [],
    ],
    [
      "a server that does not tell who is connected",
      [look(0, "silent and gone", { connected: undefined }), look(100, "silent and gone", { connected: undefined })],
      [],
    ],
    [
      "names that do not show ourselves",
      [
        look(0, "silent and gone", { connected: new Set(["c"]) }),
        look(100, "silent and gone", { connected: new Set() }),
      ],
      [],
    ],
    [
      "a link of our own that is just back: others may not be yet",
      [look(0, "silent and gone", { upForMs: 200 }), look(100, "silent and gone", { upForMs: 300 })],
      [],
    ],
    [
      "what was seen before it was steady does not count",
      [look(0, "silent and gone", { upForMs: 350 }), look(100, "silent and gone", { upForMs: 450 })],
      [],
    ],
  ])("%s", (_, looks, dead) => {
    expect(after(looks)).toEqual(dead);
  });
});
