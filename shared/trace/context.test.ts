import { describe, expect, it } from "vitest";
import { newSpan, readTraceparent, readTracestate, writeTraceparent } from "./context.js";

const [traceId, spanId] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];

describe("traceparent", () => {
  it.each([
    ["00", "01", true],
    ["00", "00", false],
    ["00", "03", true],
    ["cc", "01", true],
  ])("of version %s with the flags %s is read", (version, flags, sampled) => {
    expect(readTraceparent(`${version}-${traceId}-${spanId}-${flags}`)).toEqual({ traceId, spanId, sampled });
  });

  it("of a later version may have more fields", () => {
    expect(readTraceparent(`01-${traceId}-${spanId}-01-more`)).toEqual({ traceId, spanId, sampled: true });
  });

  it.each([
    ["nothing", undefined],
    ["an empty header", ""],
    ["two headers", [`00-${traceId}-${spanId}-01`]],
    ["two joined headers", `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`],
    ["version ff", `ff-${traceId}-${spanId}-01`],
    ["version 00 with more fields", `00-${traceId}-${spanId}-01-more`],
    ["a trace of zeros", `00-${"0".repeat(32)}-${spanId}-01`],
    ["a span of zeros", `00-${traceId}-${"0".repeat(16)}-01`],
    ["capital letters", `00-${traceId.toUpperCase()}-${spanId}-01`],
    ["a short span", `00-${traceId}-${spanId.slice(1)}-01`],
    ["a line break", `00-${traceId}-${spanId}-01\n`],
    ["8 KB", `01-${traceId}-${spanId}-01-${"x".repeat(8_192)}`],
  ])("that is %s counts as absent", (_, header) => {
    expect(readTraceparent(header)).toBeUndefined();
  });

  it("is read as it was written", () => {
    const ids = newSpan();
    expect(readTraceparent(writeTraceparent(ids))).toEqual({ ...ids, sampled: true });
  });
});

describe("tracestate", () => {
  it("keeps the whole members that 512 bytes hold", () => {
    expect(readTracestate("one=1,two=2")).toBe("one=1,two=2");
    const members = Array.from({ length: 40 }, (_, i) => `vendor${i}=${"x".repeat(20)}`);
    const kept = readTracestate(members.join(","))?.split(",") ?? [];
    expect(members.slice(0, kept.length)).toEqual(kept);
    expect(kept.join(",").length).toBeLessThanOrEqual(512);
  });

  it.each([
    ["is one member of 8 KB", `vendor=${"x".repeat(8_192)}`],
    ["is no text", "vendor=\u0000"],
    ["is empty", ""],
  ])("that %s counts as absent", (_, header) => {
    expect(readTracestate(header)).toBeUndefined();
  });
});
