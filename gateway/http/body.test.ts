import { describe, expect, it } from "vitest";
import { BodyMemory, PieceBuffer, uncountedBytes } from "./body.js";

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

describe("the memory of bodies", () => {
  const acme = { tenant: "acme" };
  const other = { tenant: "other" };

  it("leaves half of it to others, and is free again when a body is done with", () => {
    const memory = new BodyMemory(4 * MiB, 2 * MiB);
    const [first, second] = [memory.room(acme), memory.room(acme)];
    first.grow(MiB);
    second.grow(MiB);
    expect(() => second.grow(MiB + 1)).toThrow(
      `the tenant's request bodies together are larger than the limit of ${2 * MiB} bytes, try again later`,
    );
    const theirs = memory.room(other);
    theirs.grow(2 * MiB);
    expect(() => memory.room({ tenant: "third" }).grow(uncountedBytes + 1)).toThrow(
      `request bodies together are larger than the limit of ${4 * MiB} bytes, try again later`,
    );
    memory.room({ tenant: "third" }).grow(uncountedBytes);
    first.release();
    first.release();
    theirs.release();
    second.grow(2 * MiB);
    expect(() => memory.room(acme).grow(uncountedBytes + 1)).toThrow("the tenant's");
  });

  it("is that of the tenant's own limit, and of all tenants if one may have all", () => {
    const memory = new BodyMemory(4 * MiB, 2 * MiB);
    expect(() => memory.room({ ...acme, most: MiB }).grow(MiB + 1)).toThrow(`${MiB} bytes`);
    memory.room({ ...acme, most: 3 * MiB }).grow(3 * MiB);
    expect(() => new BodyMemory(4 * MiB).room(acme).grow(4 * MiB)).not.toThrow();
  });
});
