import { describe, expect, it } from "vitest";
import type { JsonObject } from "#shared/json/parse.js";
import {
  checkedWait,
  instantOf,
  LONGEST_DELAY_MS,
  LONGEST_WAIT_MS,
  readLabel,
  readOptions,
  tokensOf,
  waitOf,
} from "./options.js";

const at = (text: string) => Date.parse(text);

describe("a time with its zone", () => {
  it.each([
    ["2026-12-01T09:00:00Z", "2026-12-01T09:00:00.000Z"],
    ["2026-12-01T09:00:00+01:00", "2026-12-01T08:00:00.000Z"],
    ["2026-12-01t09:00:00.250z", "2026-12-01T09:00:00.250Z"],
    ["2028-02-29T23:59:59-11:30", "2028-03-01T11:29:59.000Z"],
  ])("%s is %s", (text, utc) => {
    expect(new Date(instantOf(text) ?? 0).toISOString()).toBe(utc);
  });

  it.each([
    "",
    "2026-12-01",
    "2026-12-01T09:00:00",
    "2026-13-01T09:00:00Z",
    "2027-02-29T00:00:00Z",
    "2026-12-01T25:00:00Z",
    "2026-12-01T09:00:00+25:00",
    "1790000000",
  ])("%s is none", (text) => {
    expect(instantOf(text)).toBeUndefined();
  });
});

describe("how long a job may wait", () => {
  const now = at("2026-12-01T00:00:00Z");
  it("counts from its admission, or to the time that it names", () => {
    expect(waitOf({ deadline: null }, now)).toBe(LONGEST_WAIT_MS);
    expect(waitOf({ deadline: 5 }, now)).toBe(5);
    expect(waitOf({ deadline: "2026-12-01T00:00:01Z" }, now)).toBe(1_000);
    expect(waitOf({ deadline: "2026-12-01T00:00:00Z" }, now)).toBeUndefined();
  });
});

describe("how long a job that is delayed may wait", () => {
  const now = at("2026-12-01T00:00:00Z");
  it("counts from when it is due", () => {
    expect(checkedWait({ deadline: 5, delay: 60_000 }, now)).toBe(5);
    expect(checkedWait({ deadline: null, delay: LONGEST_DELAY_MS }, now)).toBe(LONGEST_WAIT_MS);
    const deadline = "2026-12-01T00:01:01Z";
    expect(checkedWait({ deadline, delay: 60_000 }, now)).toBe(1_000);
    expect(checkedWait({ deadline, run_at: "2026-12-01T01:01:00+01:00" }, now)).toBe(1_000);
  });

  it.each([
    [{ deadline: "2026-12-01T00:01:00Z", delay: 60_000 }, /before the job is due/],
    [{ deadline: "2026-11-01T00:01:00Z", delay: 60_000 }, /in the past/],
    [{ deadline: null, run_at: "2026-11-30T23:59:59Z" }, /run_at must not lie in the past/],
    [{ deadline: null, run_at: "2027-12-03T00:00:00Z" }, /run_at must be at most/],
    [{ deadline: "2026-12-09T00:00:00Z", delay: 60_000 }, /from when the job is due/],
  ])("and %o cannot be kept", (times, words) => {
    expect(() => checkedWait(times, now)).toThrow(words);
  });
});

it("options without those that came later are the text that earlier versions have digested", () => {
  const terms = { resultTtlMs: 5_000, jobTtlMs: 9_000 };
  const text = (given: JsonObject) => JSON.stringify(readOptions(given, terms, undefined, undefined));
  const plain = '{"priority":null,"deadline":null,"result_ttl":5000,"labels":{},"attempts":1,"version":null}';
  expect(text({})).toBe(plain);
  expect(text({ attempts: 1, delay: null, run_at: null, backoff: null, webhook: null })).toBe(plain);
  expect(text({ delay: 5 })).not.toBe(plain);
});

describe("a label", () => {
  it.each([
    ["team:blue", { name: "team", value: "blue" }],
    ["a.b-c_1:x:y", { name: "a.b-c_1", value: "x:y" }],
    ["team:", { name: "team", value: "" }],
    [`t:${"ü".repeat(256)}`, { name: "t", value: "ü".repeat(256) }],
  ])("%s has a name and a value", (text, label) => expect(readLabel(text)).toEqual(label));

  it.each(["", "team", ":blue", "te am:blue", `${"n".repeat(65)}:blue`, `team:${"x".repeat(257)}`])(
    "%s is none",
    (text) => expect(() => readLabel(text)).toThrow(/^label must be a name and a value as team:blue/),
  );

  it("has a name in subjects that no other one has, and that every value can have", () => {
    const labels = { team: "blue", "team.b": "lue", note: "", "long-1": "a *.> text\n".repeat(20) };
    const tokens = tokensOf({ labels });
    expect(new Set(tokens).size).toBe(4);
    for (const token of tokens) expect(token).toMatch(/^[\w-]{22}$/);
    expect(tokensOf({ labels: { team: "blue" } })).toEqual([tokens[0]]);
  });
});
