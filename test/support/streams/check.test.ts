import { describe, expect, it } from "vitest";
import { clientIsLog, ends, logIsReference, neverAhead, type StreamViolation } from "./check.js";
import { EventParser } from "./event-source.js";
import type { Piece, Reading, StreamOutcome } from "./history.js";

const ask = { name: "a", model: "m", prompt: "p", parameters: {} };
const record = (index: number, text: string, final = false) =>
  JSON.stringify({
    index,
    choices: [{ index: 0, text, tokens: [index] }],
    ...(final && { final, reason: "finished" }),
  });
const log = [record(0, "a"), record(1, ""), record(2, "b"), record(3, "c", true)];

const given = (index: number, bytes = log[index]): Piece => ({
  index,
  text: "",
  record: bytes ?? "",
  at: 0,
  connection: 0,
});
const said = (text: string, index?: number): Piece => ({ index, text, record: undefined, at: 0, connection: 0 });
const names = (violations: readonly StreamViolation[]) =>
  violations.map(({ invariant, what }) => `${invariant} ${what}`);

describe("clientIsLog", () => {
  const of = (...pieces: Piece[]) => names(clientIsLog({ ask, pieces }, log));

  it("is content with every record once", () => {
    expect(of(given(0), given(1), given(2), given(3))).toEqual([]);
  });

  it("is content with texts alone, with and without their indexes", () => {
    expect(of(said("a"), said("b"), said("c"))).toEqual([]);
    expect(of(said("a", 0), said("b", 2), said("c", 3))).toEqual([]);
    expect(of(said("a"), given(1), given(2), given(3))).toEqual([]);
    expect(of(said("a", 0), given(1), given(2), given(3))).toEqual([]);
  });

  it.each([
    ["an index twice", [given(0), given(1), given(1), given(2), given(3)], /record 1 where 2 was due/],
    ["an index left out", [given(0), given(2), given(3)], /record 2 where 1 was due/],
    ["an index with another value", [given(0), given(1, record(1, "x")), given(2), given(3)], /where the log has/],
    ["two in the wrong order", [given(0), given(2), given(1), given(3)], /record 2 where 1 was due/],
    ["an end that is missing", [given(0), given(1), given(2)], /from 3 of 4 on were never given/],
    ["a record beyond the log", [given(0), given(1), given(2), given(3), given(4, "{}")], /the log has nothing/],
    ["a text twice", [said("a"), said("a"), said("b"), said("c")], /"a" where/],
    ["a text that is missing", [said("a"), said("c")], /"c" where/],
    ["an index of a text twice", [said("a", 0), said("a", 0)], /index 0 again/],
    ["a text that is missing though its index is told", [said("a", 0), said("c", 3)], /have "bc"/],
    ["an end of the text that is missing", [said("a"), said("b")], /from 3 of 4/],
    ["a text too many", [said("a"), said("b"), said("c"), said("d")], /"d" where no text is left/],
  ])("sees %s", (_, pieces, why) => {
    const [found, ...others] = of(...pieces);
    expect(found).toMatch(why);
    expect(others).toEqual([]);
  });

  it("sees that nothing came at all", () => {
    expect(of()).toHaveLength(1);
  });
});

describe("logIsReference", () => {
  it.each([
    ["the same", log, undefined],
    ["another token", [...log.slice(0, 2), record(2, "x"), record(3, "c", true)], /record 2/],
    ["one record less", log.slice(0, 3), /record 3.*\(none\)/],
    ["one record more", [...log, record(4, "d")], /record 4/],
  ])("judges %s", (_, one, why) => {
    const found = names(logIsReference("a", one, log));
    if (why === undefined) expect(found).toEqual([]);
    else expect(found[0]).toMatch(why);
  });
});

describe("ends", () => {
  const finished: StreamOutcome = { kind: "finished" };
  const of = (outcome: StreamOutcome | undefined, records: readonly string[]) => {
    const reading: Reading = { ask, manner: "events", id: "i", pieces: [], connections: [], begunAt: 0, outcome };
    return names(ends(reading, { log: records, takenAt: undefined }));
  };

  it("is content with one end", () => {
    expect(of(finished, log)).toEqual([]);
  });

  it.each([
    ["a failure", { kind: "failed", code: "expired", what: "too late" } as const, log],
    ["a client without an end", undefined, log],
    ["no final record", finished, log.slice(0, 3)],
    ["two final records", finished, [...log, record(4, "", true)]],
    ["a final record that is not the last", finished, [...log, record(4, "")]],
  ])("sees %s", (_, outcome, records) => {
    expect(of(outcome, records)).toHaveLength(1);
  });
});

describe("neverAhead", () => {
  const message = { stream: "a", index: 0, bytes: "x" };

  it("judges by the log at that moment", () => {
    expect(neverAhead({ ...message, logged: "x" })).toEqual([]);
    expect(neverAhead({ ...message, logged: undefined })).toHaveLength(1);
    expect(neverAhead({ ...message, logged: "y" })).toHaveLength(1);
  });
});

describe("EventParser", () => {
  it("gives whole events, however they are cut", () => {
    const text = 'retry: 500\n\nid: 7\ndata: {"a":1}\n\n: \n\nevent: error\ndata: x\ndata: y\n\nid: 8\nda';
    for (let at = 0; at <= text.length; at++) {
      const parser = new EventParser();
      expect([...parser.push(text.slice(0, at)), ...parser.push(text.slice(at))]).toEqual([
        { id: "7", event: undefined, data: '{"a":1}' },
        { id: undefined, event: "error", data: "x\ny" },
      ]);
    }
  });
});
