import { describe, expect, it } from "vitest";
import type { BatchInput } from "#shared/model/config.js";
import { joined, makeInputs, scatter } from "./ragged.js";

/** Three requests of 1, 2 and 1 rows. */
const shapes = [
  [1, 3, 2],
  [2, 1, 1],
  [1, 4, 1],
];

function made(kind: BatchInput["kind"], datatype: "INT32" | "FP32" = "INT32", rows = true) {
  const [one, two] = makeInputs({ kind, names: ["A", "B"], datatype, source: "X" }, shapes, rows);
  expect({ ...two, name: "A" }).toEqual(one);
  const bytes = Buffer.concat(one?.data ?? []);
  const values = Array.from({ length: bytes.length / 4 }, (_, i) =>
    datatype === "FP32" ? bytes.readFloatLE(4 * i) : bytes.readInt32LE(4 * i),
  );
  return { shape: one?.shape, values };
}

describe("inputs that the worker makes", () => {
  it.each<[BatchInput["kind"], number[], number[]]>([
    ["BATCH_ELEMENT_COUNT", [3], [6, 2, 4]],
    ["BATCH_ACCUMULATED_ELEMENT_COUNT", [3], [6, 8, 12]],
    ["BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", [4], [0, 6, 8, 12]],
    ["BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", [6], [0, 0, 0, 0, 0, 0]],
    ["BATCH_ITEM_SHAPE", [4, 2], [3, 2, 1, 1, 1, 1, 4, 1]],
    ["BATCH_ITEM_SHAPE_FLATTEN", [8], [3, 2, 1, 1, 1, 1, 4, 1]],
  ])("%s", (kind, shape, values) => {
    expect(made(kind)).toEqual({ shape, values });
    expect(made(kind, "FP32")).toEqual({ shape, values });
  });

  it("have no list of numbers if only their size means something", () => {
    // A list of as many numbers would not fit into the heap.
    const count = 2 ** 28;
    const [made] = makeInputs(
      { kind: "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", names: ["A"], datatype: "INT32", source: "X" },
      [
        [1, 2],
        [1, count],
      ],
      true,
    );
    expect([made?.shape, made?.data[0]?.length]).toEqual([[count], 4 * count]);
  });

  it("have the whole shape of a request without rows", () => {
    expect(made("BATCH_ITEM_SHAPE", "INT32", false)).toEqual({ shape: [3, 3], values: shapes.flat() });
  });
});

const tensor = (shape: readonly number[], values: readonly number[]) => ({
  name: "X",
  datatype: "UINT8" as const,
  shape,
  data: Buffer.from(values),
});

it("joined puts the elements of all requests into one row, and refuses a part without its bytes", () => {
  const parts = [tensor([1, 2], [1, 2]), tensor([1, 3], [3, 4, 5])];
  expect(joined(parts)).toMatchObject({ shape: [5], data: [Buffer.from([1, 2]), Buffer.from([3, 4, 5])] });
  expect(() => joined([tensor([1, 2], [1]), tensor([1, 3], [2, 3, 4, 5])])).toThrow(RangeError);
});

describe("a scattered output", () => {
  const of = (dims: readonly number[], values: readonly number[], rows = true) =>
    scatter(
      tensor([values.length], values),
      { source: "X", dims },
      [
        [1, 2],
        [2, 1],
      ],
      rows,
    ).map(({ shape, data }) => ({
      shape,
      data: [...data],
    }));

  it("has the sizes of its source input, and its own fixed sizes", () => {
    expect(of([-1], [1, 2, 3, 4])).toEqual([
      { shape: [1, 2], data: [1, 2] },
      { shape: [2, 1], data: [3, 4] },
    ]);
    expect(of([3], [1, 2, 3, 4, 5, 6, 7, 8, 9])[1]).toEqual({ shape: [2, 3], data: [4, 5, 6, 7, 8, 9] });
    expect(of([-1, -1], [1, 2, 3, 4], false)[1]).toEqual({ shape: [2, 1], data: [3, 4] });
  });

  it("must have as many elements as its shapes make", () => {
    expect(() => of([-1], [1, 2, 3])).toThrow(/fewer elements/);
    expect(() => of([-1], [1, 2, 3, 4, 5])).toThrow(/more elements/);
  });
});
