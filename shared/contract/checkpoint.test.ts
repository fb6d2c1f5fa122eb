import { describe, expect, it } from "vitest";
import type { Tensor } from "../frame.js";
import { decodeCheckpoint, encodeCheckpoint } from "./checkpoint.js";

const tensors: Tensor[] = [
  { name: "h", datatype: "FP32", shape: [1, 2], data: Buffer.from([1, 2, 3, 4, 5, 6, 7, 8]) },
  { name: "c", datatype: "UINT8", shape: [1, 1], data: Buffer.from([9]) },
];

describe("a checkpoint", () => {
  it("gives back what was put in", () => {
    const { frame, tensors: views } = encodeCheckpoint("5-0", tensors);
    expect(views).toEqual(tensors);
    expect(decodeCheckpoint(frame, "5-0").tensors).toEqual(tensors);
  });

  it("may have tensors without a byte, whose memory has no address", () => {
    const none = { ...tensors[0], shape: [1, 0], data: Buffer.from(new ArrayBuffer(0)) } as Tensor;
    const { frame } = encodeCheckpoint("5-0", [none, ...tensors]);
    expect(decodeCheckpoint(frame, "5-0").tensors).toHaveLength(3);
  });

  it("is refused for another step than its own", () => {
    const { frame } = encodeCheckpoint("5-0", tensors);
    expect(() => decodeCheckpoint(frame, "6-0")).toThrow(expect.objectContaining({ code: "state_lost" }));
  });

  it("is refused with any bit of its state flipped", () => {
    for (let i = 1; i <= 9; i++) {
      const { frame } = encodeCheckpoint("5-0", tensors);
      const at = frame.length - i;
      frame.writeUInt8(frame.readUInt8(at) ^ 0x10, at);
      expect(() => decodeCheckpoint(frame, "5-0")).toThrow(expect.objectContaining({ code: "state_corrupt" }));
    }
  });

  it("is refused with any byte changed, in its header too", () => {
    const { frame } = encodeCheckpoint("5-0", tensors);
    for (let at = 0; at < frame.length; at++) {
      for (const bit of [0x01, 0x02, 0x04, 0x08, 0x10]) {
        const spoiled = Buffer.from(frame);
        spoiled.writeUInt8(frame.readUInt8(at) ^ bit, at);
        expect(() => decodeCheckpoint(spoiled, "5-0"), `byte ${at}, bit ${bit}`).toThrow(
          expect.objectContaining({ name: "InferenceError" }),
        );
      }
    }
  });

  it("is refused when cut short", () => {
    const { frame } = encodeCheckpoint("5-0", tensors);
    for (const length of [0, 3, 20, frame.length - 1]) {
      expect(() => decodeCheckpoint(frame.subarray(0, length), "5-0")).toThrow(
        expect.objectContaining({ code: "state_corrupt" }),
      );
    }
  });
});
