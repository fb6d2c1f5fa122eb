import { describe, expect, it } from "vitest";
import { PieceBuffer } from "./body.js";

const MiB = 1024 * 1024;

describe("a body in pieces", () => {
  it("is put together, of small and large ones", () => {
    const sizes = [0, 1, 511, 512, 700_000, 3, 400_000, 2_000_000, 1];
    for (const first of sizes) {
      const pieces = [first, ...sizes].map((size, index) => Buffer.alloc(size, index + 1));
      const whole = Buffer.concat(pieces);
      for (const expected of [whole.length, 256 * MiB]) {
        const gathered = new PieceBuffer(expected);
        for (const piece of pieces) gathered.add(piece);
        expect([gathered.length, gathered.bytes().equals(whole)]).toEqual([whole.length, true]);
      }
    }
  });

  it("holds no piece of a few bytes, each of which would take hundreds", () => {
    const gathered = new PieceBuffer(4 * MiB);
    const piece = Buffer.from("a");
    for (let count = 0; count < 65_536; count++) gathered.add(piece);
    piece.fill("b");
    expect(gathered.bytes().toString()).toBe("a".repeat(65_536));
    expect(gathered.bytes().buffer.byteLength).toBeLessThanOrEqual(2 * 65_536);
  });
});
