import { describe, expect, it } from "vitest";
import { place, SparedMemory, viewOf, type Pieces } from "./memory.js";

function pieces(name: string, ...data: number[][]): Pieces {
  return { name, datatype: "UINT8", shape: [data.flat().length], data: data.map((bytes) => Uint8Array.from(bytes)) };
}

describe("place", () => {
  it("joins each tensor's pieces, and begins each where any element may begin", () => {
    const { memory, placed } = place([pieces("a", [1, 2], [3]), pieces("b", [4])], new SharedArrayBuffer(0));
    expect(placed.map(({ offset, bytes }) => [offset, bytes])).toEqual([
      [0, 3],
      [64, 1],
    ]);
    expect(placed.map((one) => [...viewOf(one, memory).data])).toEqual([[1, 2, 3], [4]]);
  });

  it("writes into the memory that it is given, if that is large enough", () => {
    const given = new SharedArrayBuffer(128);
    expect(place([pieces("a", [1])], given).memory).toBe(given);
    expect(
      place(
        [
          pieces(
            "a",
            Array.from({ length: 129 }, () => 7),
          ),
        ],
        given,
      ).memory.byteLength,
    ).toBe(256);
  });

  it("takes tensors without a byte", () => {
    const { memory, placed } = place([pieces("a"), pieces("b", [])], new SharedArrayBuffer(0));
    expect(placed.map((one) => viewOf(one, memory).data.length)).toEqual([0, 0]);
  });
});

describe("spared memory", () => {
  it("comes back, but for what one large batch alone needed", () => {
    const spared = new SparedMemory();
    const memory = new SharedArrayBuffer(64);
    spared.giveBack(memory);
    spared.giveBack(new SharedArrayBuffer(2 ** 27));
    expect(spared.take()).toBe(memory);
    expect(spared.take().byteLength).toBe(0);
  });
});
