import { describe, expect, it } from "vitest";
import { flattener, resolveNames, type Signature } from "./script-names.js";

const signature: Signature = {
  KEYS: ["load", { ready: [] }],
  ARGV: ["group", { lanes: ["base", "pin"] }, { requests: ["lane", "records..."] }],
};
const head = `#!lua
-- x.lua: shows each form.
--   KEYS.load        the counts
--   KEYS.ready[]     the streams
--   ARGV.group
--   ARGV.lanes[]     for each stream:
--     .base
--     .pin           of the lane
--   ARGV.requests[]
--     .lane
--     .records...
`;
const resolved = (code: string, names = signature) => resolveNames(`${head}${code}\n`, names).slice(head.length, -1);

describe("names of keys and arguments", () => {
  it.each([
    ["KEYS.load", "KEYS[1]"],
    ["KEYS.ready[i]", "KEYS[i + 1]"],
    ["KEYS.ready[2]", "KEYS[3]"],
    ["for i = 1, #KEYS.ready do", "for i = 1, (#KEYS - 1) do"],
    ["ARGV.group .. #ARGV.group", "ARGV[1] .. #ARGV[1]"],
    ["ARGV.lanes[i].base .. ARGV.lanes[i].pin", "ARGV[2 * i] .. ARGV[2 * i + 1]"],
    ["ARGV.lanes[i + 1].pin", "ARGV[2 * (i + 1) + 1]"],
    ["ARGV.lanes.FIRST + ARGV.lanes.WIDTH * #KEYS.ready", "2 + 2 * (#KEYS - 1)"],
    ["ARGV.requests(at).lane, ARGV.requests(at).records", "ARGV[at], ARGV[at + 1]"],
    ["ARGV.records(at + ARGV.requests.WIDTH)", "ARGV[at + 2]"],
    ["-- ARGV.unknown, in a comment", "-- ARGV.unknown, in a comment"],
  ])("%s becomes %s", (code, expected) => {
    expect(resolved(code)).toBe(expected);
  });

  it.each([
    "KEYS.unknown",
    "ARGV.lanes",
    "ARGV.lanes[i]",
    "ARGV.lanes[i].unknown",
    "ARGV.group[1]",
    "ARGV.group.WIDTH",
    "#ARGV.lanes",
    "#ARGV.requests",
    "ARGV.requests[i].lane",
    "ARGV.requests.FIRST",
    "ARGV.records[1]",
  ])("%s is refused", (code) => {
    expect(() => resolved(code)).toThrow(/is not in the head, or cannot be read in this way$/);
  });

  it("count the items of a last list whose rows have one width", () => {
    const rows: Signature = { KEYS: [], ARGV: [{ rows: ["a", "b"] }] };
    const text = "#!lua\n-- x.lua: counts.\n--   ARGV.rows[]\n--     .a\n--     .b\nreturn #ARGV.rows\n";
    expect(resolveNames(text, rows)).toMatch(/return \(#ARGV \/ 2\)\n$/);
  });

  it.each([
    ["another order", { ...signature, KEYS: [{ ready: [] }, "load"] }],
    ["a name less", { ...signature, KEYS: [{ ready: [] }] }],
    ["a field more", { ...signature, KEYS: ["load", { ready: ["of"] }] }],
  ])("of the wrapper and the head may not differ: %s", (_, names) => {
    expect(() => resolved("return 1", names)).toThrow("the head lists KEYS 'load ready[]', the wrapper");
  });

  it("put values in order, with the number of values before a list of any length", () => {
    const requests = [
      { records: ["r1", "r2"], lane: 1 },
      { lane: 2, records: [] },
    ];
    const values = { requests, lanes: [{ pin: "p", base: "b" }], group: "g" };
    expect(flattener(signature.ARGV)(values)).toEqual(["g", "b", "p", 1, 2, "r1", "r2", 2, 0]);
    expect(flattener(signature.KEYS)({ ready: ["x", "y"], load: "l" })).toEqual(["l", "x", "y"]);
  });
});
