import { describe, expect, it } from "vitest";
import { servedModel } from "../../../test/fixtures/served-models.js";
import { checkClassification, classified } from "./classification.js";

const output = (datatype: "FP32" | "INT64" | "UINT8", dims: number[], labels?: string[]) => ({
  name: "Y",
  datatype,
  dims,
  ...(labels !== undefined && { labels }),
});
const textsIn = (data: Buffer): string[] => {
  const texts: string[] = [];
  for (let at = 0; at < data.length;) {
    const end = at + 4 + data.readUInt32LE(at);
    texts.push(data.toString("utf8", at + 4, end));
    at = end;
  }
  return texts;
};

describe("classes in place of a tensor", () => {
  it("are the largest values with their indexes, the first of equal ones first", () => {
    const model = { ...servedModel("m"), maxBatchSize: 0, outputs: [output("FP32", [5], ["a", "", "c"])] };
    const data = Buffer.from(Float32Array.of(1, 3.25, 3.25, Number.NaN, -2).buffer);
    const [found] = classified(
      [{ name: "Y", datatype: "FP32", shape: [5], data }],
      [{ name: "Y", binary: false, classes: 9 }],
      model,
    );
    expect(found).toMatchObject({ datatype: "BYTES", shape: [5] });
    expect(textsIn(found?.data ?? Buffer.alloc(0))).toEqual([
      "3.250000:1",
      "3.250000:2:c",
      "1.000000:0:a",
      "-2.000000:4",
      "NaN:3",
    ]);
  });

  it("are those of each row of a batch, and integers print whole", () => {
    const model = { ...servedModel("m"), maxBatchSize: 4, outputs: [output("INT64", [1, 2])] };
    const data = Buffer.from(BigInt64Array.of(1n, -1n, 5n, 2n ** 60n).buffer);
    const [found] = classified(
      [{ name: "Y", datatype: "INT64", shape: [2, 1, 2], data }],
      [{ name: "Y", binary: true, classes: 1 }],
      model,
    );
    expect(found).toMatchObject({ shape: [2, 1] });
    expect(textsIn(found?.data ?? Buffer.alloc(0))).toEqual(["1:0", `${2n ** 60n}:1`]);
  });

  it("leave other outputs as they are", () => {
    const model = { ...servedModel("m"), outputs: [output("UINT8", [1])] };
    const tensors = [{ name: "Y", datatype: "UINT8" as const, shape: [1, 1], data: Buffer.from([7]) }];
    expect(classified(tensors, [{ name: "Y", binary: true }], model)).toBe(tensors);
  });

  it("are refused of a datatype without an order", () => {
    expect(() => checkClassification({ datatype: "BYTES" })).toThrow(
      "class result not available for output due to unsupported type 'BYTES'",
    );
  });
});
