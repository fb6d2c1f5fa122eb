import { describe, expect, it } from "vitest";
import { servedModel } from "../../../test/fixtures/served-models.js";
import { checkClassification, classified, limitClasses, refuseClassesLater } from "./classification.js";

const output = (datatype: "FP32" | "INT64" | "UINT8" | "INT8", dims: number[], labels?: string[]) => ({
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
  it("are the largest values with their indexes, the first of equal ones first", async () => {
    const model = { ...servedModel("m"), maxBatchSize: 0, outputs: [output("FP32", [5], ["a", "", "c"])] };
    const data = Buffer.from(Float32Array.of(1, 3.25, 3.25, Number.NaN, -2).buffer);
    const [found] = await classified(
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

  it("are those of each row of a batch, and integers print whole", async () => {
    const model = { ...servedModel("m"), maxBatchSize: 4, outputs: [output("INT64", [1, 2])] };
    const data = Buffer.from(BigInt64Array.of(1n, -1n, 5n, 2n ** 60n).buffer);
    const [found] = await classified(
      [{ name: "Y", datatype: "INT64", shape: [2, 1, 2], data }],
      [{ name: "Y", binary: true, classes: 1 }],
      model,
    );
    expect(found).toMatchObject({ shape: [2, 1] });
    expect(textsIn(found?.data ?? Buffer.alloc(0))).toEqual(["1:0", `${2n ** 60n}:1`]);
  });

  it("leave other outputs as they are", async () => {
    const model = { ...servedModel("m"), outputs: [output("UINT8", [1])] };
    const tensors = [{ name: "Y", datatype: "UINT8" as const, shape: [1, 1], data: Buffer.from([7]) }];
    expect(await classified(tensors, [{ name: "Y", binary: true }], model)).toBe(tensors);
  });

  it("are refused of a datatype without an order", () => {
    expect(() => checkClassification({ datatype: "BYTES" })).toThrow(
      "class result not available for output due to unsupported type 'BYTES'",
    );
  });

  it("are found among millions of elements while the event loop turns", async () => {
    const model = { ...servedModel("m"), maxBatchSize: 0, outputs: [output("FP32", [-1])] };
    // Each element is larger than all before it, so each goes into the list of the largest.
    const values = Float32Array.from({ length: 4_000_000 }, (_, i) => i);
    let turns = 0;
    let next = setImmediate(turn);
    function turn(): void {
      turns++;
      next = setImmediate(turn);
    }
    const [found] = await classified(
      [{ name: "Y", datatype: "FP32", shape: [values.length], data: Buffer.from(values.buffer) }],
      [{ name: "Y", binary: false, classes: 3 }],
      model,
    );
    clearImmediate(next);
    expect(textsIn(found?.data ?? Buffer.alloc(0))).toEqual(
      [3_999_999, 3_999_998, 3_999_997].map((i) => `${i}.000000:${i}`),
    );
    expect(turns).toBeGreaterThan(10);
  });

  it("come in the order of a sort, for any number of them", async () => {
    const model = { ...servedModel("m"), maxBatchSize: 0, outputs: [output("INT8", [-1])] };
    const values = Int8Array.from({ length: 500 }, (_, i) => (i * 7919) % 101);
    const sorted = [...values].map((value, i) => ({ value, i })).sort((a, b) => b.value - a.value || a.i - b.i);
    for (const classes of [1, 2, 63, 499, 500, 501]) {
      const [found] = await classified(
        [{ name: "Y", datatype: "INT8", shape: [500], data: Buffer.from(values.buffer) }],
        [{ name: "Y", binary: false, classes }],
        model,
      );
      const wanted = sorted.slice(0, classes).map(({ value, i }) => `${value}:${i}`);
      expect(textsIn(found?.data ?? Buffer.alloc(0))).toEqual(wanted);
    }
  });

  it("are refused if an answer would have too many of them", () => {
    const model = { ...servedModel("m"), maxBatchSize: 128, outputs: [output("FP32", [1_000])] };
    const any = { ...model, outputs: [output("FP32", [-1])] };
    const asking = (classes: number) => [{ name: "Y", binary: false, classes }];
    limitClasses(asking(1_000_000), model, 65);
    limitClasses(asking(65_536), any, 1);
    expect(() => limitClasses(asking(1_000_000), model, 66)).toThrow(
      "'classification' asks for up to 66000 classes, but an answer has at most 65536",
    );
    expect(() => limitClasses(asking(65_537), any, 1)).toThrow("up to 65537 classes");
  });

  it("are refused of an answer that comes later", () => {
    expect(() => refuseClassesLater([{ name: "Y", binary: false, classes: 2 }])).toThrow(
      "'classification' is not supported for a job or a request in the background",
    );
    refuseClassesLater([{ name: "Y", binary: false }]);
  });
});
