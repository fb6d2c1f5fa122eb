import { describe, expect, it } from "vitest";
import { load } from "./counts.js";
import { due, jobView, repeats, stage } from "./jobs.js";
import { resolveRecords } from "./lua.js";
import { brief, entry, outcome } from "./requests.js";
import { sequence } from "./sequence.js";

describe("a record", () => {
  it("reads the text that it has written", () => {
    const facts = {
      next: 3,
      done: 2,
      start: 1,
      ended: "0",
      at: "5-0.worker.1",
      pin: "1:abc",
      entry: "7-0",
      on: "1:abc",
    };
    const whole = { ...facts, request: "t:r", lapses: 0, keptUntil: 1_700_000_000_000, kept: ["1=a", "2=b"] };
    const text = "3|2|1|0|5-0.worker.1|1:abc|7-0|1:abc|t:r|0|1700000000000|1=a 2=b";
    expect(sequence.write(whole)).toBe(text);
    expect(sequence.parse(text)).toEqual(whole);
  });

  it.each([
    ["a field too few", due, "1"],
    ["a field too many", stage, "a|1|2"],
    ["letters in a number", load, "1 x"],
    ["an unknown code", brief, "1|0||1|1|1:a|g|7||"],
    ["nothing", entry, ""],
  ])("refuses a text with %s", (_, record, text) => {
    expect(record.read(text)).toBeUndefined();
    expect(() => record.parse(text)).toThrow(TypeError);
  });

  it("may have an absent number, a last field with separators, and a separator within", () => {
    expect([stage.write({ request: "t:r", due: undefined }), stage.parse("|5").due]).toEqual(["t:r|", 5]);
    expect(brief.parse("1|0||1|1|1:a|g|0||2|1|0").terms).toBe("2|1|0");
    expect(repeats.parse("3 1 2 50 -1 a b ")).toMatchObject({ budget: -1, codes: "a b " });
    const head = { ended: 0, at: 5, kind: "error", pin: "1:a", gateway: "g" };
    expect(outcome.write({ ...head, body: "a\nb" })).toBe("0000000000000|0000000000005|error|1:a|g\na\nb");
  });
});

describe("a list", () => {
  const values = { name: "t:j", state: "failed", type: "/v2", options: "{}", shown: "{}", request: "t:r" };
  const times = [
    "2",
    "5",
    "6",
    "",
    "",
    "-7",
    "1:a",
    "8",
    Buffer.from("{}"),
    "",
    3,
    0,
    "",
    "",
    "",
    "",
    "",
    "",
    "0",
    "9",
  ];

  it("gives the values of a reply by their names", () => {
    const view = jobView.read([...Object.values(values), ...times]);
    expect(view).toMatchObject({ ...values, made: 2, queuedAt: 6, beganAt: undefined, leftMs: -7, resultBytes: 3 });
    expect(view).toMatchObject({ failure: Buffer.from("{}"), schedule: undefined, seenAt: 9 });
    const overdue = [...times.slice(0, 15), "-120", ...times.slice(16)];
    expect(jobView.read([...Object.values(values), ...overdue])).toMatchObject({ dueInMs: -120 });
  });

  it.each([
    ["a value too few", [...Object.values(values), ...times.slice(1)]],
    ["an absent value", [null, ...Object.values(values).slice(1), ...times]],
    ["a word in place of a number", [...Object.values(values), "two", ...times.slice(1)]],
    ["no list at all", "t:j"],
  ])("refuses a reply with %s", (_, reply) => {
    expect(() => jobView.read(reply)).toThrow(TypeError);
  });
});

describe("a script with records", () => {
  it.each([
    ["t:match(PATTERN.due(at, made))", "t:match('^(%d+)|(%d+)$')"],
    ["t:match(PATTERN.entry(request))", "t:match('^([^|]*)')"],
    ["t:match(PATTERN.entry(deadline))", "t:match('^[^|]*|[^|]*|%d+|[0-7]|(%d+)')"],
    ["t:match(PATTERN.outcome(kind, body))", String.raw`t:match('^%d+|%d+|([^|]*)|[^|]*|[^\n]*\n(.*)$')`],
    ["TEXT.due{at = a, made = 'b'}", "a .. '|' .. 'b'"],
    ["TEXT.due{at = a or f(b, {c, 1}), made = r[1]}", "(a or f(b, {c, 1})) .. '|' .. r[1]"],
    ["TEXT.due{at = a + 1, made = TEXT.stage{request = b, due = c}}", "a + 1 .. '|' .. b .. '|' .. c"],
    ["TEXT.load{items = a, bytes = b}", "string.format('%d %d', a, b)"],
    ["WRITTEN.load{items = a, bytes = b}", "a .. ' ' .. b"],
    ["HEAD.brief{bytes = a, step = b}", "a .. '|' .. b"],
    ["TEXT.entry{facts, from = a}", "facts .. '|' .. a"],
    ["LIST.parked{facts = a, frame = b or c, terms = d}", "{a, b or c, d}"],
    ["LIST.parked(all[i]).frame:sub(1)", "all[i][2]:sub(1)"],
    [
      "-- record sequenceView: packSequenceView\n",
      "local function packSequenceView(r)\n  return {r.name, r.facts, r.stateBytes, r.state}\nend\n",
    ],
    ["-- record due: packDue\n", "local function packDue(r)\n  return r.at .. '|' .. r.made\nend\n"],
    ["-- record load: newLoad\n", "local function newLoad()\n  return {items = 0, bytes = 0}\nend\n"],
  ])("%s becomes %s", (source, expected) => {
    expect(resolveRecords(source)).toBe(expected);
  });

  it("unpacks numbers and texts", () => {
    expect(resolveRecords("-- record load: unpackLoad\n")).toContain(
      "{items = tonumber(items), bytes = tonumber(bytes)}",
    );
    expect(resolveRecords("-- record due: unpackDue\n")).toContain("{at = at, made = made}");
  });

  it.each([
    "PATTERN.nothing(at)",
    "PATTERN.due(when)",
    "PATTERN.due(made, at)",
    "PATTERN.due",
    "TEXT.due{at = a}",
    "TEXT.due{made = a, at = b}",
    "TEXT.due{at = a, made = b, more = c}",
    "TEXT.due{at = a, made = b",
    "HEAD.due{made = a}",
    "TEXT.parked{facts = a, frame = b, terms = c}",
    "LIST.due{at = a, made = b}",
    "LIST.parked{facts = a, frame = b}",
    "LIST.parked(list).at",
    "LIST.due(list).at",
    "PATTERN.parked(facts)",
    "-- record due: unpackStage\n",
    "-- record nothing: unpackNothing\n",
  ])("%s is refused", (source) => {
    expect(() => resolveRecords(source)).toThrow(TypeError);
  });
});
