import { describe, expect, it } from "vitest";
import { JsonError } from "#shared/json/error.js";
import { parseHeader } from "./parse-infer.js";

describe("parseHeader", () => {
  it("parses the same bytes once, and others for themselves", () => {
    const first = parseHeader(Buffer.from('{"id":"é"}'));
    expect(parseHeader(Buffer.from('{"id":"é"}'))).toBe(first);
    expect({ ...(first as object) }).toEqual({ id: "é" });
    expect({ ...(parseHeader(Buffer.from('{"id":"è"}')) as object) }).toEqual({ id: "è" });
  });

  it("refuses the same bytes every time", () => {
    for (let i = 0; i < 2; i++) expect(() => parseHeader(Buffer.from('{"id":'))).toThrow(JsonError);
  });

  it("remembers no more than a bounded number", () => {
    const first = parseHeader(Buffer.from("[1]"));
    for (let i = 0; i < 2_000; i++) parseHeader(Buffer.from(`[${i}, 2]`));
    expect(parseHeader(Buffer.from("[1]"))).not.toBe(first);
  });
});
