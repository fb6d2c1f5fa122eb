import { expect, it } from "vitest";
import type { Schedule } from "../../gateway/answers.js";
import { listLines, scheduleBody, scheduleLines } from "./schedules.js";

const file = Buffer.from('{"inputs": [{"name": "A", "data": [9007199254740993, 1.0]}]}\n');

it("the body of a schedule holds the file as it stands", () => {
  expect(scheduleBody("infer", "f", file, { every: 5_000 })).toBe(`{"every":5000,"job":{"infer":${file.toString()}}}`);
  const options = { cron: "0 9 * * *", timezone: "Europe/Berlin", limit: 2, endAt: "2027-01-01T00:00:00Z" };
  const terms = { priority: 5, deadline: 60_000, label: { team: "blue" } };
  expect(JSON.parse(scheduleBody("chat", "f", Buffer.from("{}"), { ...options, ...terms }))).toEqual({
    cron: "0 9 * * *",
    timezone: "Europe/Berlin",
    end_at: "2027-01-01T00:00:00Z",
    limit: 2,
    job: { chat: {}, priority: 5, deadline: 60_000, labels: { team: "blue" } },
  });
  expect(() => scheduleBody("infer", "a file", Buffer.from("[]"), { every: 5_000 })).toThrow("not a JSON object");
});

const view: Partial<Schedule> = {
  id: "sched_1",
  object: "schedule",
  model: "m",
  version: null,
  state: "active",
  cron: "0 9 * * *",
  every: null,
  timezone: "UTC",
  next_run_at: "2026-12-01T09:00:00.000Z",
  next_runs: ["2026-12-01T09:00:00.000Z"],
  runs: 3,
  last_error: { at: "2026-11-30T09:00:00.000Z", code: "unknown_model", message: "no\nmodel" },
  job: { infer: {} },
};

it("a schedule is shown by what it says", () => {
  expect(scheduleLines(view)).toEqual([
    "id           sched_1",
    "model        m",
    "state        active",
    "cron         0 9 * * *",
    "timezone     UTC",
    "next_run_at  2026-12-01T09:00:00.000Z",
    "runs         3",
    "next_runs    2026-12-01T09:00:00.000Z",
    "last_error   no model (unknown_model, at 2026-11-30T09:00:00.000Z)",
  ]);
});

it("schedules are listed with their times", () => {
  const interval = { ...view, id: "sched_2", cron: null, timezone: null, every: 5_000, next_run_at: null };
  expect(listLines([view, interval])).toEqual([
    "SCHEDULE  MODEL  STATE   TIMES          NEXT                      RUNS",
    "sched_1   m      active  0 9 * * * UTC  2026-12-01T09:00:00.000Z  3",
    "sched_2   m      active  5000 ms        -                         3",
  ]);
});
