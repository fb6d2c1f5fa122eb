import { describe, expect, it } from "vitest";
import { fixedError, InferenceError } from "#shared/errors.js";
import { errorBody, errorReply } from "./errors.js";

describe("the body of a refusal", () => {
  const told = (error: unknown) => JSON.parse(errorBody(error)) as unknown;

  it("says why a step finds no sequence", () => {
    const expired = new InferenceError("sequence_start_required", "START", { reason: "expired" });
    expect(told(expired)).toEqual({ error: "START", code: "sequence_start_required", reason: "expired" });
    expect(told(fixedError("version_retired", "meanwhile"))).toMatchObject({ reason: "version_retired" });
  });

  it("has the usual reason where a worker refuses a step", () => {
    expect(told(new InferenceError("sequence_start_required", "START"))).toMatchObject({ reason: "cancelled" });
  });

  it("has no reason where it is no such refusal", () => {
    expect(told(fixedError("not_found", "usual"))).toEqual({ error: "Not Found", code: "not_found" });
  });
});

it("an answer that something is gone may not be kept", () => {
  expect(errorReply(fixedError("resume_window_passed", "usual")).headers).toHaveProperty("cache-control", "no-store");
  expect(errorReply(fixedError("not_found", "usual")).headers).not.toHaveProperty("cache-control");
});
