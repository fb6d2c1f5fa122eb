import { describe, expect, it } from "vitest";
import { errorKinds } from "#shared/errors.js";
import { mayFitLater, repeatedCodes } from "./repeats.js";

describe("which failures are worth another attempt", () => {
  it("are those of class 5xx", () => {
    for (const code of ["model_error", "internal", "unavailable", "request_lost", "queue_full"]) {
      expect(repeatedCodes).toContain(code);
    }
    const refusals = Object.entries(errorKinds).filter(([, { status }]) => status < 500);
    expect(repeatedCodes.filter((code) => refusals.some(([refusal]) => refusal === code))).toEqual([]);
  });

  it("are no ends that its client has asked for, and nothing that only happens again", () => {
    for (const code of ["cancelled", "expired", "poison_request", "state_lost", "state_corrupt", "state_too_large"]) {
      expect(repeatedCodes).not.toContain(code);
    }
  });
});

it("a job that is due waits where its model's only worker may just be started anew, for a while", () => {
  const others = [{ name: "other" }];
  const both = [...others, { name: "m" }];
  const served = [[], others, both] as const;
  expect(served.map((all) => mayFitLater("unknown_model", "m", all, false))).toEqual([true, true, false]);
  expect(served.map((all) => mayFitLater("unknown_model", "m", all, true))).toEqual([true, false, false]);
  expect(mayFitLater("queue_full", "m", both, true)).toBe(true);
  expect(mayFitLater("rate_limit_exceeded", "m", both, true)).toBe(true);
  expect(mayFitLater("sequence_start_required", "m", [], false)).toBe(false);
});
