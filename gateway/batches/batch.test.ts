import { describe, expect, it } from "vitest";
import {
  advanced,
  batchText,
  cancelled,
  endedAs,
  endingOf,
  newBatch,
  parseBatch,
  piecesOf,
  UnreadableBatch,
  viewOf,
  withStatus,
} from "./batch.js";

const given = {
  id: "batch_a",
  tenant: "default",
  endpoint: "/v1/completions",
  inputFile: "file-a",
  window: "1h",
  metadata: { team: "blue" },
  digest: "d",
};
const made = newBatch(given, 5_000, 3_600_000);

describe("a batch", () => {
  it("is read as it was written, and what is no batch is refused", () => {
    expect(parseBatch(batchText(made))).toEqual(made);
    for (const text of ["", "{}", batchText({ ...made, status: "other" as "failed" })]) {
      expect(() => parseBatch(text)).toThrow(UnreadableBatch);
    }
  });

  it("is cancelled before its end, once, and not after it", () => {
    const running = withStatus(made, "in_progress", 6_000);
    const over = cancelled(running, 7_000);
    expect(over).toMatchObject({ status: "cancelling", since: { in_progress: 6_000, cancelling: 7_000 } });
    expect(over && cancelled(over, 8_000)).toBe(over);
    for (const status of ["finalizing", "completed", "expired", "failed"] as const) {
      expect(cancelled(withStatus(running, status, 7_000), 8_000)).toBeUndefined();
    }
  });

  it("ends as what has happened to it", () => {
    const running = withStatus(made, "in_progress", 6_000);
    expect(endingOf(running, 7_000)).toBe("completed");
    expect(endingOf(running, made.expiresAt)).toBe("expired");
    expect(endingOf(withStatus(running, "cancelling", 7_000), made.expiresAt)).toBe("cancelled");
    expect(endedAs(running)).toBeUndefined();
    expect(endedAs(withStatus(running, "expired", 7_000))).toBe("expired");
  });

  it("counts the pieces of each run by themselves", () => {
    const step = { checkpoint: made.checkpoint, completed: 2, failed: 1, output: true, errors: false, bytes: 10 };
    const first = advanced(advanced({ ...made, run: 1 }, step), step);
    const second = advanced({ ...first, run: 3 }, { ...step, errors: true });
    expect(second.output).toEqual([
      [1, 2],
      [3, 1],
    ]);
    expect(second.errors).toEqual([[3, 1]]);
    expect([piecesOf(second.output, 1), piecesOf(second.output, 2), piecesOf(second.output, 3)]).toEqual([2, 0, 1]);
    expect(second).toMatchObject({ completed: 6, failed: 3, bytes: 30 });
  });

  it("is shown with seconds, and with nothing that only Baton needs", () => {
    const view = viewOf(made);
    expect(view).toMatchObject({ created_at: 5, expires_at: 3_605, completed_at: null, errors: null });
    expect(Object.keys(view)).not.toEqual(expect.arrayContaining(["tenant", "checkpoint", "digest"]));
    const fault = { code: "too_many_lines", message: "too many", line: 7 };
    expect(viewOf({ ...made, faults: [fault] }).errors).toEqual({ object: "list", data: [{ ...fault, param: null }] });
  });
});
