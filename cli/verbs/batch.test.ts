import { describe, expect, it } from "vitest";
import type { Batch } from "../../gateway/answers.js";
import { readAnswer } from "../client/answers.js";
import { countsOf, faultLines, hasBatchEnded, progressBar, readNote } from "./batch-lines.js";

const counts = { total: 200, completed: 90, failed: 10 };

describe("what is shown of a batch", () => {
  it("is its status, until it is known how many lines there are", () => {
    const status = "in_progress";
    expect(progressBar({ status, request_counts: { ...counts, total: 0 } }, 0)).toBe("in_progress");
    const bar = progressBar({ status, request_counts: counts }, 12.34);
    expect(bar).toBe("[############............] 50 % 100/200, 10 failed, 12/s in_progress");
  });

  it("is read from a gateway's answer, whichever member the answer lacks", () => {
    const text = JSON.stringify({
      status: "failed",
      errors: { object: "list", data: [{ code: "empty_file", message: "no\nrequests", line: 3, param: null }] },
      request_counts: { total: 1, completed: 0, failed: 1 },
    });
    const read = readAnswer<Batch>(text);
    expect(countsOf(read)).toEqual({ total: 1, completed: 0, failed: 1 });
    expect(faultLines(read)).toEqual(["line 3: no requests (empty_file)"]);
    expect(hasBatchEnded(read)).toBe(true);
    const empty = readAnswer<Batch>("{}");
    expect([countsOf(empty), faultLines(empty), hasBatchEnded(empty)]).toEqual([
      { total: 0, completed: 0, failed: 0 },
      [],
      false,
    ]);
  });
});

it("a note beside a file is read only where it is one", () => {
  const note = { digest: "sha256:a", endpoint: "/v1/completions", key: "k" };
  expect(readNote(JSON.stringify({ ...note, file: "file-a" }))).toEqual({ ...note, file: "file-a" });
  for (const text of ["", "[]", "{}", JSON.stringify({ ...note, key: 7 })]) expect(readNote(text)).toBeUndefined();
});
