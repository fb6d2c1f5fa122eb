import { describe, expect, it } from "vitest";
import { errorKinds } from "#shared/errors.js";
import { repeatedCodes } from "./repeats.js";

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
