import { describe, expect, it } from "vitest";
import { judge, type Look, type Missing } from "./absence.js";

/** What is seen of worker b by worker a: whether it is late, and whether it is connected. */
type Seen = "late and gone" | "late but there" | "on time";

describe("judge", () => {
  const look = (at: number, seen: Seen, given: Partial<Look> = {}): Look => ({
    at,
    self: "a",
    overdue: seen === "on time" ? [] : ["b"],
    connected: new Set(seen === "late and gone" ? ["a", "c"] : ["a", "b", "c"]),
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
    ["one look is not enough", [look(0, "late and gone")], []],
    ["two are", [look(0, "late and gone"), look(100, "late and gone")], ["b"]],
    ["two at once are as one", [look(0, "late and gone"), look(20, "late and gone")], []],
    [
      "and a third counts from the first",
      [look(0, "late and gone"), look(50, "late and gone"), look(100, "late and gone")],
      ["b"],
    ],
    ["a link that is back is nobody's death", [look(0, "late and gone"), look(100, "late but there")], []],
    [
      "nor is one that is cut twice",
      [look(0, "late and gone"), look(100, "late but there"), look(200, "late and gone")],
      [],
    ],
    ["who renews is alive", [look(0, "late and gone"), look(100, "on time"), look(200, "late and gone")], []],
    [
      "who is frozen keeps its connection",
      [look(0, "late but there"), look(100, "late but there"), look(900, "late but there")],
      [],
    ],
    [
      "a server that does not tell who is connected",
      [look(0, "late and gone", { connected: undefined }), look(100, "late and gone", { connected: undefined })],
      [],
    ],
    [
      "names that do not show ourselves",
      [look(0, "late and gone", { connected: new Set(["c"]) }), look(100, "late and gone", { connected: new Set() })],
      [],
    ],
    [
      "a link of our own that is just back: others may not be yet",
      [look(0, "late and gone", { upForMs: 300 }), look(100, "late and gone", { upForMs: 400 })],
      [],
    ],
    [
      "what was seen before it was steady does not count",
      [look(0, "late and gone", { upForMs: 950 }), look(100, "late and gone", { upForMs: 1_050 })],
      [],
    ],
  ])("%s", (_, looks, dead) => {
    expect(after(looks)).toEqual(dead);
  });
});
