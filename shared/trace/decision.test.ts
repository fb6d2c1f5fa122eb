import { expect, it } from "vitest";
import { decide } from "./decision.js";

const parent = (flags: string) => `00-${"ab".repeat(16)}-${"cd".repeat(8)}-${flags}`;

it.each([
  ["the caller records, whatever the rate", { traceparent: parent("01") }, 0, 0.5, true],
  ["the caller does not record, whatever the rate", { traceparent: parent("00") }, 1, 0, false],
  ["the caller says nothing, and the lot is below the rate", {}, 0.5, 0.49, true],
  ["the caller says nothing, and the lot is not below the rate", {}, 0.5, 0.5, false],
  ["the header is malformed, and the rate decides", { traceparent: "00-ab" }, 1, 0.99, true],
  ["the rate is 0", {}, 0, 0, false],
])("decides where %s", (_, headers, rate, lot, isSampled) => {
  expect(decide(headers, rate, () => lot) !== undefined).toBe(isSampled);
});

it("continues the caller's trace below the caller's span, with its state", () => {
  const sampled = decide({ traceparent: parent("01"), tracestate: "vendor=1" }, 0);
  expect(sampled).toMatchObject({ ids: { traceId: "ab".repeat(16) }, parentId: "cd".repeat(8), state: "vendor=1" });
  expect(sampled?.ids.spanId).not.toBe("cd".repeat(8));
});

it("takes no state from a caller without a valid traceparent", () => {
  expect(decide({ tracestate: "vendor=1" }, 1)).toMatchObject({ parentId: undefined, state: undefined });
});
