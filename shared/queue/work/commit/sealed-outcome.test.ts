import { describe, expect, it } from "vitest";
import { recordAt } from "../../../../test/fixtures/token-records.js";
import { storeOutcome } from "../../../contract/outcome.js";
import { sealedOutcome } from "./sealed-outcome.js";

describe("the outcome of a sealed stream", () => {
  const lost = storeOutcome({ kind: "error", code: "request_lost", message: "the stream's log is gone" });

  it.each([
    { log: "is gone", records: [] },
    { log: "has no final record", records: [recordAt(0)] },
    { log: "is not ours", records: ["{"] },
  ])("is an error when its log $log", ({ records }) => {
    expect(sealedOutcome(records)).toEqual(lost);
  });
});
