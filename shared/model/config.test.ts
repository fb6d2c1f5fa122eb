import { describe, expect, it } from "vitest";
import { configType, dataTypes, kserveType } from "./config.js";
import { datatypeBytes, isDatatype } from "./datatype.js";

describe("kserveType", () => {
  it.each([
    ["TYPE_BOOL", "BOOL", 1],
    ["TYPE_UINT8", "UINT8", 1],
    ["TYPE_UINT16", "UINT16", 2],
    ["TYPE_UINT32", "UINT32", 4],
    ["TYPE_UINT64", "UINT64", 8],
    ["TYPE_INT8", "INT8", 1],
    ["TYPE_INT16", "INT16", 2],
    ["TYPE_INT32", "INT32", 4],
    ["TYPE_INT64", "INT64", 8],
    ["TYPE_FP16", "FP16", 2],
    ["TYPE_FP32", "FP32", 4],
    ["TYPE_FP64", "FP64", 8],
    ["TYPE_BF16", "BF16", 2],
    ["TYPE_STRING", "BYTES", 0],
  ] as const)("%s is %s, %i bytes an element (0: variable)", (type, datatype, bytes) => {
    expect(kserveType(type)).toBe(datatype);
    expect(configType(datatype)).toBe(type);
    expect(datatypeBytes[datatype]).toBe(bytes);
  });

  it("has a KServe name for every type but TYPE_INVALID", () => {
    expect(dataTypes.slice(1).every((type) => isDatatype(kserveType(type)))).toBe(true);
    expect(() => kserveType("TYPE_INVALID")).toThrow(TypeError);
  });
});
