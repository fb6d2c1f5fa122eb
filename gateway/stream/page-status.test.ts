/** The status of an empty page, case by case. */
import { describe, expect, it } from "vitest";
import { pageStatus, tailOf, type EmptyPage, type Seen } from "./page-status.js";

const record = '{"index":2,"choices":[]}';
const final = '{"index":2,"choices":[],"final":true,"reason":"finished"}';
const result = { kind: "result", body: Buffer.alloc(0) } as const;
const failure = { kind: "error", code: "state_lost", message: "gone" } as const;

const running = (length: number): EmptyPage => ({ said: "running", length });
const unknown: EmptyPage = { said: "unknown", length: 0 };
const finished: EmptyPage = { said: "ended", length: 3, outcome: result, last: final };
const failed: EmptyPage = { said: "ended", length: 3, outcome: failure, last: record };
const failedEarly: EmptyPage = { said: "ended", length: 0, outcome: failure, last: undefined };
const empty: EmptyPage = { said: "ended", length: 0, outcome: result, last: undefined };
const cutShort: EmptyPage = { said: "ended", length: 3, outcome: result, last: record };

function tell(page: EmptyPage, at: number, seen: Seen, isStream: boolean | undefined): string {
  const now = pageStatus(page, at, seen, isStream);
  if (now.kind === "refused") return now.error.code;
  return now.kind === "final" ? now.record.json : now.kind;
}

const made = (index: number) =>
  `{"index":${index},"choices":[],"final":true,"reason":"error","error":{"code":"state_lost","message":"gone"}}`;

describe("nothing at the reader's index", () => {
  it.each<[string, EmptyPage, number, Seen, boolean | undefined, string]>([
    ["a running stream's next record", running(3), 3, "nothing", true, "wait"],
    ["beyond a running stream", running(3), 4, "nothing", true, "ahead_of_log"],
    ["a running stream that became shorter", running(3), 4, "running", true, "state_lost"],
    ["after the final record", finished, 3, "nothing", true, "over"],
    ["beyond the final record", finished, 4, "nothing", true, "ahead_of_log"],
    ["a finished stream that became shorter", finished, 4, "records", true, "state_lost"],
    ["a stream whose outcome came from outside", failed, 3, "records", true, made(3)],
    ["after its made record", failed, 4, "nothing", true, "over"],
    ["beyond it", failed, 5, "nothing", true, "ahead_of_log"],
    ["one that never began", failedEarly, 0, "nothing", true, made(0)],
    ["an error of a model without streams", failedEarly, 0, "nothing", false, made(0)],
    [
      "a result of a model without streams",
      empty,
      0,
      "nothing",
      false,
      '{"index":0,"choices":[],"final":true,"reason":"finished"}',
    ],
    ["after it", empty, 1, "nothing", false, "over"],
    ["beyond it", empty, 2, "nothing", undefined, "ahead_of_log"],
    ["a stream's log that is gone", empty, 0, "nothing", true, "resume_window_passed"],
    [
      "the same in the middle of reading, of a model that is gone too",
      empty,
      5,
      "records",
      undefined,
      "resume_window_passed",
    ],
    ["a log whose end is gone", cutShort, 3, "records", true, "state_lost"],
    ["a request that nobody made", unknown, 0, "nothing", undefined, "unknown_request"],
    ["a request that is gone", unknown, 3, "nothing", undefined, "resume_window_passed"],
    ["one that was read before", unknown, 3, "records", true, "resume_window_passed"],
    ["one that was running a moment ago", unknown, 0, "running", true, "state_lost"],
  ])("of %s", (_, page, at, seen, isStream, expected) => {
    expect(tell(page, at, seen, isStream)).toBe(expected);
  });
});

describe("where a stream stands", () => {
  it.each<[string, EmptyPage, number, boolean]>([
    ["it runs", running(3), 3, false],
    ["its log has the final record", finished, 3, true],
    ["its outcome is the final record", failed, 4, true],
    ["it failed without a record", failedEarly, 1, true],
  ])("is told where %s", (_, page, next, isOver) => {
    expect(tailOf(page)).toEqual({ next, isOver });
  });

  it.each<[string, EmptyPage, string]>([
    ["there is no such request", unknown, "unknown_request"],
    ["its log is gone", empty, "resume_window_passed"],
    ["its log is cut short", cutShort, "state_lost"],
  ])("is not told where %s", (_, page, code) => {
    expect(() => tailOf(page)).toThrow(expect.objectContaining({ code }));
  });
});
