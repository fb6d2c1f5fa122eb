import { expect, it } from "vitest";
import { carriedIn, carriedMeta } from "./carried.js";
import { newSpan } from "./context.js";

it.each([
  ["all members", { admitted: newSpan(), state: "vendor=1", level: 2 }],
  ["the trace alone", { admitted: newSpan(), state: undefined, level: undefined }],
])("a worker reads what the gateway has written: %s", (_, carried) => {
  expect(carriedIn(JSON.parse(JSON.stringify(carriedMeta(carried))) as Record<string, unknown>)).toEqual(carried);
});

it("a request without a trace, or with an unreadable one, is not sampled", () => {
  expect(carriedIn({ outputs: [] })).toBeUndefined();
  expect(carriedIn({ trace: 1 })).toBeUndefined();
});
