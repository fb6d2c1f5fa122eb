import { describe, expect, it } from "vitest";
import { judge, worthAsking, type Look, type Missing } from "./judge.js";

/** Worker a's view of worker b: whether b is silent, and whether b is connected. */
type Seen = "silent and gone" | "silent but there" | "heard of";

const LEASE_MS = 1_000;
const OWN = "server 1";
const THEIRS = "server 2";

/**
 * @param at the time on the clock of Redis, too; b beat last at 0, and counts as living for a lease
 */
function look(at: number, seen: Seen, given: Partial<Look> = {}, aliveUntil = LEASE_MS): Look {
  return {
    at,
    redisNow: at,
    leaseMs: LEASE_MS,
    silent: seen === "heard of" ? [] : [{ worker: "b", aliveUntil, connection: THEIRS }],
    own: OWN,
    present: new Set(seen === "silent and gone" ? [OWN] : [OWN, THEIRS]),
    upForMs: 10_000,
    ...given,
  };
}

function after(looks: readonly Look[]): string[] {
  let missing: Missing = new Map();
  let dead: ReturnType<typeof judge>["dead"] = [];
  for (const one of looks) ({ dead, missing } = judge(missing, one));
  return dead.map(({ worker }) => worker);
}

describe("judge, by connections", () => {
  it.each<[string, Look[], string[]]>([
    ["one look is not enough", [look(200, "silent and gone")], []],
    ["two are", [look(200, "silent and gone"), look(300, "silent and gone")], ["b"]],
    ["two at once are as one", [look(200, "silent and gone"), look(220, "silent and gone")], []],
    [
      "and a third counts from the first",
      [look(200, "silent and gone"), look(250, "silent and gone"), look(300, "silent and gone")],
      ["b"],
    ],
    ["a worker whose link is back is alive", [look(200, "silent and gone"), look(300, "silent but there")], []],
    [
      "nor is one that is cut twice",
      [look(200, "silent and gone"), look(300, "silent but there"), look(400, "silent and gone")],
      [],
    ],
    [
      "a worker that was heard of is alive",
      [look(200, "silent and gone"), look(300, "heard of"), look(400, "silent and gone")],
      [],
    ],
    [
      "one that has beaten between two looks is alive",
      [look(200, "silent and gone"), look(400, "silent and gone", {}, LEASE_MS + 100)],
      [],
    ],
    [
      "who is frozen keeps its connection",
      [look(200, "silent but there"), look(300, "silent but there"), look(900, "silent but there")],
      [],
    ],
    [
      "a server that does not tell who is connected",
      [look(200, "silent and gone", { present: undefined }), look(300, "silent and gone", { present: undefined })],
      [],
    ],
    [
      "a list that does not show ourselves",
      [look(200, "silent and gone", { present: new Set() }), look(300, "silent and gone", { present: new Set() })],
      [],
    ],
    [
      "a link of our own that is just back: others may not be yet",
      [look(200, "silent and gone", { upForMs: 200 }), look(300, "silent and gone", { upForMs: 300 })],
      [],
    ],
    [
      "what was seen before it was steady does not count",
      [look(200, "silent and gone", { upForMs: 350 }), look(300, "silent and gone", { upForMs: 450 })],
      [],
    ],
    [
      "a connection to another server than ours says nothing",
      [
        look(200, "silent and gone", { own: "restarted 1", present: new Set(["restarted 1"]) }),
        look(300, "silent and gone", { own: "restarted 1", present: new Set(["restarted 1"]) }),
      ],
      [],
    ],
  ])("%s", (_, looks, dead) => {
    expect(after(looks)).toEqual(dead);
  });
});

describe("judge, by silence", () => {
  const unknown = { own: undefined, present: undefined };
  const restarted = { own: "restarted 1", present: new Set(["restarted 1"]) };

  it.each<[string, Look[], string[]]>([
    ["less than a lease is not enough", [look(999, "silent but there")], []],
    ["a lease is", [look(1_000, "silent but there")], ["b"]],
    ["where nobody knows the server, it must have been watched", [look(1_000, "silent but there", unknown)], []],
    [
      "for as long",
      [look(200, "silent but there", unknown), look(1_000, "silent but there", unknown)].concat(
        look(1_200, "silent but there", unknown),
      ),
      ["b"],
    ],
    ["a server that has restarted knows of no beat since", [look(5_000, "silent and gone", restarted)], []],
    [
      "there a worker is watched for a lease",
      [
        look(5_000, "silent and gone", restarted),
        look(5_900, "silent and gone", restarted),
        look(6_000, "silent and gone", restarted),
      ],
      ["b"],
    ],
  ])("%s", (_, looks, dead) => {
    expect(after(looks)).toEqual(dead);
  });
});

describe("worthAsking", () => {
  it("names the connections that our own server could have, once our own link is steady", () => {
    const silent = ["server 7", "other 8", ""].map((connection, i) => ({
      worker: String(i),
      aliveUntil: 0,
      connection,
    }));
    expect(worthAsking({ silent, own: OWN, upForMs: Infinity })).toEqual(["server 7"]);
    expect(worthAsking({ silent, own: OWN, upForMs: 100 })).toEqual([]);
    expect(worthAsking({ silent, own: undefined, upForMs: Infinity })).toEqual([]);
  });
});
