import { describe, expect, it } from "vitest";
import { tensorDisagreement, type ComparedTensor } from "./agreement.js";

const floats = (...values: number[]): ComparedTensor => ({
  name: "Y",
  datatype: "FP32",
  shape: [values.length],
  data: new Uint8Array(Float32Array.from(values).buffer),
});
const halves = (...bits: number[]): ComparedTensor => ({
  name: "Y",
  datatype: "FP16",
  shape: [bits.length],
  data: new Uint8Array(Uint16Array.from(bits).buffer),
});
const integers = (...values: number[]): ComparedTensor => ({
  name: "N",
  datatype: "INT32",
  shape: [values.length],
  data: new Uint8Array(Int32Array.from(values).buffer),
});

describe("tensorDisagreement", () => {
  it("allows for rounding, as a share of the largest number", () => {
    expect(tensorDisagreement(floats(100, 0.09), floats(100, 0), undefined)).toBeUndefined();
    expect(tensorDisagreement(floats(100, 0.125), floats(100, 0), undefined)).toMatch(
      /^element 1 of 'Y' is 0\.125 instead of 0, where at most 0\.001 of the largest one, 100, is allowed$/,
    );
    expect(tensorDisagreement(floats(100, 0.125), floats(100, 0), 0.01)).toBeUndefined();
    expect(tensorDisagreement(floats(1.000001), floats(1), 0)).toMatch(/^element 0/);
  });

  it("takes numbers near zero by their difference", () => {
    expect(tensorDisagreement(floats(1e-8), floats(0), undefined)).toBeUndefined();
    expect(tensorDisagreement(floats(1e-5), floats(0), undefined)).toMatch(/^element 0/);
  });

  it("knows no rounding between a number and what is none", () => {
    const odd = floats(NaN, Infinity, -Infinity, 1);
    expect(tensorDisagreement(odd, odd, undefined)).toBeUndefined();
    expect(tensorDisagreement(floats(NaN), floats(1), undefined)).toMatch(/is NaN instead of 1/);
    expect(tensorDisagreement(floats(1), floats(NaN), undefined)).toMatch(/is 1 instead of NaN/);
    expect(tensorDisagreement(floats(Infinity), floats(-Infinity), 1)).toMatch(/is Infinity instead of -Infinity/);
  });

  it("allows more where numbers have few bits", () => {
    // 1 and 1 + 5/1024.
    expect(tensorDisagreement(halves(0x3c05), halves(0x3c00), undefined)).toBeUndefined();
    expect(tensorDisagreement(halves(0x3c0f), halves(0x3c00), undefined)).toMatch(/^element 0/);
  });

  it("wants all else to be the same", () => {
    expect(tensorDisagreement(integers(1, 2), integers(1, 2), 1)).toBeUndefined();
    expect(tensorDisagreement(integers(1, 3), integers(1, 2), 1)).toBe("'N' has other elements");
    expect(tensorDisagreement(integers(1), integers(1, 2), 1)).toBe("'N' is INT32 [1] instead of INT32 [2]");
    expect(tensorDisagreement(integers(1), floats(1), 1)).toBe("'Y' is INT32 [1] instead of FP32 [1]");
  });
});
