import { describe, expect, it } from "vitest";
import { encodeFrame, type Tensor } from "../frame.js";
import { decodeSequenceFrame, encodeSequenceFrame } from "./sequence-frame.js";

const tensor = (datatype: Tensor["datatype"], shape: readonly number[], data: Buffer): Tensor => ({
  name: "s",
  datatype,
  shape,
  data,
});
const frame = { step: 3, model: "m", version: "1", digest: "abc" };
const text = Buffer.from([2, 0, 0, 0, 104, 105, 0, 0, 0, 0]);

describe("a checkpoint as clients carry it", () => {
  it("comes back as it was", () => {
    const tensors = [tensor("FP32", [2, 2], Buffer.alloc(16, 7)), tensor("BYTES", [2], text)];
    expect(decodeSequenceFrame(encodeSequenceFrame({ ...frame, tensors }))).toEqual({ ...frame, tensors });
  });

  it("says where a sequence goes on from its initial state", () => {
    const initial = { ...frame, tensors: undefined };
    expect(decodeSequenceFrame(encodeSequenceFrame(initial))).toEqual(initial);
  });

  it.each([
    ["fewer bytes than its shape wants", tensor("FP32", [2], Buffer.alloc(4))],
    ["a size that is none", tensor("FP32", [-1, -1], Buffer.alloc(4))],
    ["strings that go past its end", tensor("BYTES", [1], text.subarray(0, 5))],
    ["fewer strings than its shape wants", tensor("BYTES", [3], text)],
    ["a type that is none", tensor("FP99" as "FP32", [1], Buffer.alloc(4))],
  ])("is refused with %s, whatever its checksum", (_, wrong) => {
    const bytes = encodeSequenceFrame({ ...frame, tensors: [wrong] });
    expect(() => decodeSequenceFrame(bytes)).toThrow(expect.objectContaining({ code: "frame_corrupt" }));
  });

  it.each([0, 1.5, 2 ** 31 + 1, Number.MAX_SAFE_INTEGER])("is refused with the step %d", (step) => {
    const bytes = encodeSequenceFrame({ ...frame, step, tensors: undefined });
    expect(() => decodeSequenceFrame(bytes)).toThrow(expect.objectContaining({ code: "frame_corrupt" }));
  });

  it("is refused without its checksum, or as another kind of frame", () => {
    for (const meta of [
      {},
      { ...frame, format: "baton-sequence-1", initial: true, checksum: "x" },
      { version: "v", crc: 1 },
    ]) {
      expect(() => decodeSequenceFrame(encodeFrame(meta, []))).toThrow(
        expect.objectContaining({ code: "frame_corrupt" }),
      );
    }
  });
});
