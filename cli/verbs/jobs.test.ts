import { describe, expect, it } from "vitest";
import { duration, durationOrTime } from "./duration.js";
import { failureOf, hasEnded, jobLines, jobListLines, progressLine, readJob } from "./job-lines.js";
import { jobBody, label, listQuery } from "./jobs.js";

describe("a duration", () => {
  it.each([
    ["0", 0],
    ["1500", 1_500],
    ["250ms", 250],
    ["5s", 5_000],
    ["1.5s", 1_500],
    ["90m", 5_400_000],
    ["1h30m", 5_400_000],
    ["2d", 172_800_000],
  ])("'%s' is %d ms", (text, ms) => expect(duration(text)).toBe(ms));

  it.each(["", "s", "5 s", "-5s", "5x", "5s5s", "1h 30m", "1e3", "1.2345s", "5s!"])("'%s' is none", (text) => {
    expect(() => duration(text)).toThrow("It must be a duration such as 250ms");
  });

  it("may be a time, where that is allowed", () => {
    expect(durationOrTime("2026-12-01T09:00:00+01:00")).toBe("2026-12-01T09:00:00+01:00");
    expect(durationOrTime("1h")).toBe(3_600_000);
    expect(() => durationOrTime("tomorrow")).toThrow("It must be a duration");
  });
});

describe("a label", () => {
  it("is added to those before", () => {
    expect(label("team=blue")).toEqual({ team: "blue" });
    expect(label("note=a=b", { team: "blue" })).toEqual({ team: "blue", note: "a=b" });
    expect(label("empty=")).toEqual({ empty: "" });
  });

  it.each([
    ["team", "It must be name=value."],
    ["=blue", "It must be name=value."],
    ["team=red", "The label team is given twice."],
  ])("'%s' is refused", (text, message) => expect(() => label(text, { team: "blue" })).toThrow(message));
});

describe("the body of a submission", () => {
  const file = Buffer.from('{"inputs": [{"name": "A", "data": [9007199254740993, 1.0]}]}\n');
  it("holds the file as it stands", () => {
    expect(jobBody("infer", "f", file, {})).toBe(`{"infer":${file.toString()}}`);
    const options = { delay: 5_000, priority: 5, deadline: "2026-12-01T00:00:00Z", label: { team: "blue" } } as const;
    expect(jobBody("infer", "f", file, options)).toBe(
      `{"infer":${file.toString()},"delay":5000,"priority":5,"deadline":"2026-12-01T00:00:00Z","labels":{"team":"blue"}}`,
    );
  });

  it.each(["", "{", "[1]", "1", '{"a":1},"priority":{}', "{} {}"])("is no file that holds %s", (text) => {
    expect(() => jobBody("infer", "a file", Buffer.from(text), {})).toThrow(/^a file is not (?:JSON: |a JSON object)/);
  });
});

it("a list is asked for with its filters", () => {
  expect(listQuery({}).toString()).toBe("limit=100");
  const options = { state: "queued,running", model: "m", label: { team: "blue", a: "b:c" } };
  expect(listQuery(options).toString()).toBe(
    "limit=100&state=queued%2Crunning&model=m&label=team%3Ablue&label=a%3Ab%3Ac",
  );
});

const view = {
  id: "job_1",
  object: "job",
  type: "infer",
  model: "simple",
  state: "completed",
  created_at: "2026-11-22T02:00:00.000Z",
  run_at: null,
  labels: { team: "blue", data: "x" },
  progress: null,
  error: null,
  result: { outputs: [{ name: "OUT", datatype: "INT64", shape: [2], data: [1, 2] }] },
};

describe("a list", () => {
  it("shows a job on a line", () => {
    expect(jobListLines([readJob(JSON.stringify(view))])).toEqual([
      "JOB    TYPE   MODEL   STATE      CREATED                   LABELS",
      "job_1  infer  simple  completed  2026-11-22T02:00:00.000Z  team=blue data=x",
    ]);
  });
});

describe("a job", () => {
  it("is shown with its result", () => {
    expect(jobLines(readJob(JSON.stringify(view)))).toEqual([
      [
        "id          job_1",
        "type        infer",
        "model       simple",
        "state       completed",
        "created_at  2026-11-22T02:00:00.000Z",
        "labels      team=blue data=x",
      ],
      ["OUTPUT  DATATYPE  SHAPE  DATA", "OUT     INT64     [2]    1 2"],
    ]);
  });

  it.each([
    [{ text_output: "a tale" }, ["a tale"]],
    [{ choices: [{ message: { role: "assistant", content: "a chat" } }] }, ["a chat"]],
    [{ choices: [{ text: "one" }, { text: "two" }] }, ["one", "two"]],
    [{ other: 1 }, ['{"other":1}']],
  ])("is shown with the result %j", (result, lines) => {
    expect(jobLines(readJob(JSON.stringify({ ...view, result })))[1]).toEqual(lines);
  });

  const error = { code: "poison_request", message: "set aside" };
  it.each([
    [{ state: "scheduled" }, "scheduled"],
    [{ state: "queued", position: 3 }, "queued, 3 before it"],
    [{ state: "queued", position: null }, "queued"],
    [{ state: "running", progress: { tokens: 57, max_tokens: 200 } }, "running, 57 of 200 tokens"],
    [{ state: "running", progress: { tokens: 57, max_tokens: null } }, "running, 57 tokens"],
    [{ state: "running", progress: { tokens: 1, max_tokens: null } }, "running, 1 token"],
    [{ state: "running", progress: null }, "running"],
    [{ state: "cancelled", progress: { tokens: 1, max_tokens: null } }, "cancelled"],
    [{ state: "failed", error }, "failed: set aside (poison_request)"],
    [{ state: "scheduled", run_at: "2026-12-01T09:00:00.000Z" }, "scheduled for 2026-12-01T09:00:00.000Z"],
  ])("%j is as far as '%s'", (job, line) => expect(progressLine(readJob(JSON.stringify(job)))).toBe(line));

  it.each([
    ["scheduled", false, undefined],
    ["queued", false, undefined],
    ["running", false, undefined],
    ["completed", true, undefined],
    ["failed", true, "job job_1 has failed: set aside (poison_request)"],
    ["cancelled", true, "job job_1 is cancelled"],
    ["expired", true, "job job_1 is expired"],
  ])("in the state %s has ended: %s", (state, ended, message) => {
    const job = readJob(JSON.stringify({ id: "job_1", state, error: state === "failed" ? error : null }));
    expect(hasEnded(job)).toBe(ended);
    if (ended) expect(failureOf(job)?.message).toBe(message);
    if (message !== undefined) expect(failureOf(job)?.exit).toBe(1);
  });
});
