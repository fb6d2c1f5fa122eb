import { describe, expect, it } from "vitest";
import type { Tensor } from "#shared/frame.js";
import { place, viewOf } from "./memory.js";
import type { PlainTensor } from "./protocol.js";
import { encodeStrings } from "./thread/strings.js";
import { split, stack } from "./stack.js";

const first = { axis: 0, bare: false };

function tensor(shape: number[], bytes: number[]): Tensor {
  return { name: "x", datatype: "UINT8", shape, data: Buffer.from(bytes) };
}

function stacked(parts: readonly Tensor[], layout = first): PlainTensor {
  const rows = parts.map(({ shape }) => shape[0] ?? 1);
  const { memory, placed } = place([stack(parts, rows, layout)], new SharedArrayBuffer(0));
  const [one] = placed;
  if (one === undefined) throw new Error("one tensor should be placed");
  return viewOf(one, memory);
}

describe("stack", () => {
  it("puts rows on top of each other", () => {
    const { shape, data } = stacked([tensor([1, 2], [1, 2]), tensor([2, 2], [3, 4, 5, 6])]);
    expect(shape).toEqual([3, 2]);
    expect([...data]).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it.each([
    ["second", 1, [2, 3, 2], [1, 2, 5, 6, 9, 10, 3, 4, 7, 8, 11, 12]],
    ["last", 2, [2, 2, 3], [1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12]],
  ])("weaves rows where the batch is the %s axis, and splits them again", (_, axis, shape, bytes) => {
    const layout = { axis, bare: false };
    const parts = [tensor([1, 2, 2], [1, 2, 3, 4]), tensor([2, 2, 2], [5, 6, 7, 8, 9, 10, 11, 12])];
    const whole = stacked(parts, layout);
    expect([whole.shape, [...whole.data]]).toEqual([shape, bytes]);
    expect(split(whole, [1, 2], layout)).toEqual(parts);
  });

  it("weaves long runs, too", () => {
    const layout = { axis: 1, bare: false };
    const parts = [0, 1, 2].map((i) =>
      tensor(
        [1, 3, 50],
        Array.from({ length: 150 }, (_, at) => (at + i * 70) % 256),
      ),
    );
    expect(split(stacked(parts, layout), [1, 1, 1], layout)).toEqual(parts);
  });

  it("drops the dimension that only the configuration has", () => {
    const layout = { axis: 0, bare: true };
    const parts = [tensor([1, 1], [1]), tensor([2, 1], [2, 3])];
    expect(stacked(parts, layout).shape).toEqual([3]);
    expect(split(stacked(parts, layout), [1, 2], layout)).toEqual(parts);
  });

  it("takes what all requests share once", () => {
    const shared = tensor([], [7]);
    const { shape, data } = stack([shared, shared], [1, 1], undefined);
    expect([shape, data.map((piece) => [...piece])]).toEqual([[], [[7]]]);
  });

  it("passes a request of a model without a batch dimension as it is", () => {
    expect(stack([tensor([2], [1, 2])], [1], undefined).shape).toEqual([2]);
  });
});

describe("split", () => {
  it("gives each request its rows", () => {
    const parts = split(stacked([tensor([1, 2], [1, 2]), tensor([2, 2], [3, 4, 5, 6])]), [1, 2], first);
    expect(parts.map(({ shape }) => shape)).toEqual([
      [1, 2],
      [2, 2],
    ]);
    expect(parts.map(({ data }) => [...data])).toEqual([
      [1, 2],
      [3, 4, 5, 6],
    ]);
  });

  it("finds the ends of strings of any length", () => {
    const data = encodeStrings(["a", "", "long one", "é"]);
    const parts = split({ name: "s", datatype: "BYTES", shape: [4], data }, [1, 2, 1], first);
    expect(parts.map(({ data }) => data.length)).toEqual([5, 4 + 12, 6]);
  });

  it("refuses outputs whose rows are not the batch's", () => {
    expect(() => split(stacked([tensor([1, 1], [1])]), [1, 1], first)).toThrow("has 1 rows, expected 2");
  });
});
