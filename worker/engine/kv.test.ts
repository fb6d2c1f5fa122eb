import { describe, expect, it } from "vitest";
import { blockBytes, bytesPerPosition, gather, rightSlice, type KvBlock, type KvLayout } from "./kv.js";

const layout: KvLayout = {
  datatype: "FP32",
  tensors: [
    { past: "k", present: "K", heads: 2, dim: 2 },
    { past: "v", present: "V", heads: 1, dim: 1 },
  ],
};

/** Element = 1000 * row + 100 * head + 10 * position + dim. */
function block(rows: number, capacity: number): KvBlock {
  const arrays = layout.tensors.map(({ heads, dim }) => {
    const array = new Float32Array(rows * heads * capacity * dim);
    let at = 0;
    for (let r = 0; r < rows; r++)
      for (let h = 0; h < heads; h++)
        for (let p = 0; p < capacity; p++) for (let d = 0; d < dim; d++) array[at++] = 1000 * r + 100 * h + 10 * p + d;
    return array;
  });
  return { rows, capacity, arrays };
}

describe("gather", () => {
  it("puts rows of different lengths at the right edge and zeros to their left", () => {
    const source = block(2, 3);
    const made = gather(layout, [rightSlice(source, 1, 1), { block: source, row: 0, from: 0, length: 2 }]);
    expect(made.rows).toBe(2);
    expect(made.capacity).toBe(2);
    expect([...(made.arrays[0] ?? [])]).toEqual([0, 0, 1020, 1021, 0, 0, 1120, 1121, 0, 1, 10, 11, 100, 101, 110, 111]);
    expect([...(made.arrays[1] ?? [])]).toEqual([0, 1020, 0, 10]);
  });

  it("gives back what it was given when nothing changes", () => {
    const source = block(3, 4);
    const same = gather(
      layout,
      [0, 1, 2].map((row) => rightSlice(source, row, 4)),
    );
    expect(same).toEqual(source);
  });

  it.each([
    ["past the last row", { row: 2, from: 0, length: 1 }],
    ["before the first row", { row: -1, from: 0, length: 1 }],
    ["before the row's first position", { row: 1, from: -1, length: 2 }],
    ["past the row's last position", { row: 0, from: 2, length: 2 }],
  ])("takes nothing from another row (%s)", (_, slice) => {
    const source = block(2, 3);
    expect(() => gather(layout, [rightSlice(source, 0, 3), { block: source, ...slice }])).toThrow(RangeError);
  });

  it("takes nothing from a block that has another tensor than its layout", () => {
    const source = block(2, 3);
    const short = { ...source, arrays: source.arrays.map((array) => array.slice(1)) };
    expect(() => gather(layout, [rightSlice(short, 0, 3)])).toThrow(RangeError);
  });

  it("makes an empty block of rows without positions", () => {
    const empty = gather(layout, [{ block: block(1, 2), row: 0, from: 0, length: 0 }]);
    expect(empty).toMatchObject({ rows: 1, capacity: 0 });
    expect(empty.arrays.map(({ length }) => length)).toEqual([0, 0]);
  });
});

it("counts bytes by datatype", () => {
  expect(bytesPerPosition(layout)).toBe(5 * 4);
  expect(bytesPerPosition({ ...layout, datatype: "FP16" })).toBe(5 * 2);
  expect(blockBytes(layout, block(2, 3))).toBe(2 * 3 * 20);
});
