import { describe, expect, it } from "vitest";
import { hasBatchEnded, progressBar, readBatch, readNote } from "./batch-lines.js";

const view = { status: "in_progress", total: 200, completed: 90, failed: 10, outputFile: null, errorFile: null };

describe("what is shown of a batch", () => {
  it("is its status, until it is known how many lines there are", () => {
    expect(progressBar({ ...view, total: 0, faults: [] }, 0)).toBe("in_progress");
    const bar = progressBar({ ...view, faults: [] }, 12.34);
    expect(bar).toBe("[############............] 50 % 100/200, 10 failed, 12/s in_progress");
  });

  it("is read from what a gateway answers, whatever is missing of it", () => {
    const text = JSON.stringify({
      status: "failed",
      errors: { object: "list", data: [{ code: "empty_file", message: "no\nrequests", line: 3 }] },
      request_counts: { total: 1, completed: 0, failed: 1 },
      output_file_id: null,
      error_file_id: "file-e",
    });
    const read = readBatch(text);
    expect(read).toMatchObject({ total: 1, failed: 1, outputFile: null, errorFile: "file-e" });
    expect(read.faults).toEqual(["line 3: no requests (empty_file)"]);
    expect(hasBatchEnded(read)).toBe(true);
    expect(readBatch("{}")).toMatchObject({ status: "", total: 0, faults: [] });
  });
});

it("a note beside a file is read only where it is one", () => {
  const note = { digest: "sha256:a", endpoint: "/v1/completions", key: "k" };
  expect(readNote(JSON.stringify({ ...note, file: "file-a" }))).toEqual({ ...note, file: "file-a" });
  for (const text of ["", "[]", "{}", JSON.stringify({ ...note, key: 7 })]) expect(readNote(text)).toBeUndefined();
});
