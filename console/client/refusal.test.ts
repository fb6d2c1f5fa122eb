import { describe, expect, it } from "vitest";
import { refusalOf } from "./refusal.js";

describe("refusalOf", () => {
  it.each([
    [400, '{"error":"bad","code":"invalid_argument"}', "invalid_argument", "bad"],
    [404, '{"error":{"message":"no model","code":"model_not_found"}}', "model_not_found", "no model"],
    [502, "<html>", "unknown", "the answer had status 502"],
    [500, '{"error":{"message":null}}', "unknown", "the answer had status 500"],
    [503, '"text"', "unknown", "the answer had status 503"],
  ])("of status %d with %s", (status, body, code, message) => {
    expect(refusalOf(status, body, "id")).toMatchObject({ status, code, message, requestId: "id" });
  });

  it("has no request id if the answer had none", () => {
    expect(refusalOf(502, "", null).requestId).toBeUndefined();
  });
});
