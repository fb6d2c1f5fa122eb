import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { BodyMemory } from "../../http/body.js";
import { Arrivals } from "./arrivals.js";

const KiB = 1024;
const MiB = KiB * KiB;

function framed(message: Buffer, isPacked = 0): Buffer {
  const head = Buffer.alloc(5, isPacked);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function open(most = 4 * MiB) {
  const memory = new BodyMemory(8 * MiB);
  return { memory, arrivals: new Arrivals(memory.room({ tenant: "" }), most) };
}

const large = framed(Buffer.alloc(MiB));

describe("the memory of a call's messages", () => {
  it("counts a message from its first bytes until the handler has taken it, in any pieces", () => {
    const { memory, arrivals } = open();
    arrivals.receive(large.subarray(0, 3));
    arrivals.receive(large.subarray(3, 500_000));
    expect(memory.heldBytes).toBe(500_000 - 5);
    arrivals.receive(large.subarray(500_000));
    expect([memory.heldBytes, arrivals.isComing]).toEqual([MiB, false]);
    arrivals.receive(Buffer.concat([large, large.subarray(0, 4)]));
    expect([memory.heldBytes, arrivals.isComing]).toEqual([2 * MiB, true]);
    for (const left of [MiB, 0]) {
      arrivals.give(() => undefined);
      arrivals.taken();
      expect(memory.heldBytes).toBe(left);
    }
  });

  it("is held by a client that sends its only message and does not end its side, for a time", () => {
    const memory = new BodyMemory(8 * MiB);
    const arrivals = new Arrivals(memory.room({ tenant: "" }), 4 * MiB, true);
    arrivals.receive(large);
    expect([arrivals.isComing, arrivals.isLate(performance.now() + 1_000, 1_000)]).toEqual([false, true]);
    arrivals.handled();
    expect(arrivals.isLate(performance.now() + 1_000, 1_000)).toBe(false);
  });

  it("counts both forms of a message that was compressed", async () => {
    const { memory, arrivals } = open();
    const packed = gzipSync(Buffer.alloc(3 * MiB));
    arrivals.receive(framed(packed, 1));
    expect(await arrivals.unpack(packed, "gzip")).toEqual(Buffer.alloc(3 * MiB));
    expect(memory.heldBytes).toBe(3 * MiB + packed.length);
    arrivals.give(() => undefined);
    arrivals.taken();
    expect(memory.heldBytes).toBe(0);
  });

  it("refuses a message that is too large by its head, or once it is inflated", async () => {
    const { arrivals } = open();
    expect(() => arrivals.receive(framed(Buffer.alloc(4 * MiB + 1)).subarray(0, 5))).toThrow(
      "is larger than the limit",
    );
    const { arrivals: others } = open();
    const packed = gzipSync(Buffer.alloc(64 * MiB));
    others.receive(framed(packed, 1));
    await expect(others.unpack(packed, "gzip")).rejects.toThrow("after decompression");
  });

  it("refuses what has no room, and gives all back when the call is over", () => {
    const { memory, arrivals } = open();
    for (let i = 0; i < 8; i++) arrivals.receive(large);
    expect(() => arrivals.receive(large)).toThrow("together are larger than the limit");
    arrivals.close();
    expect(memory.heldBytes).toBe(0);
    arrivals.receive(large);
    expect(memory.heldBytes).toBe(0);
  });
});

describe("the messages of a stream", () => {
  it("are given one at a time while they are large", () => {
    const { arrivals } = open();
    const given: number[] = [];
    for (let i = 0; i < 2; i++) {
      arrivals.receive(large);
      arrivals.give(() => given.push(i));
    }
    expect(given).toEqual([0]);
    arrivals.taken();
    expect(given).toEqual([0, 1]);
  });

  it("are late if they are not whole for too long, unless the gateway does not read", () => {
    const { arrivals } = open();
    const now = performance.now();
    arrivals.receive(large.subarray(0, 100));
    expect([arrivals.isLate(now + 50, 100), arrivals.isLate(now + 5_000, 100)]).toEqual([false, true]);
    arrivals.pause(now + 5_000);
    expect(arrivals.isLate(now + 5_000, 100)).toBe(false);
    arrivals.receive(large.subarray(100));
    expect(arrivals.isLate(now + 50_000, 100)).toBe(false);
  });
});
