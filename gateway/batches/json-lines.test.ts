import { describe, expect, it } from "vitest";
import { LineCutter, type Line } from "./json-lines.js";

const MOST = 64;

/** Cuts a file that comes in pieces of `size` bytes. */
function cut(file: string | Buffer, size: number, from = { offset: 0, line: 0 }): Line[] {
  const cutter = new LineCutter(from, MOST);
  const bytes = Buffer.from(file);
  const lines: Line[] = [];
  for (let i = from.offset; i < bytes.length; i += size) lines.push(...cutter.push(bytes.subarray(i, i + size)));
  return [...lines, ...cutter.end()];
}

const shown = (lines: readonly Line[]) => lines.map(({ number, bytes }) => [number, bytes?.toString("utf8")]);

describe.each([1, 3, 7, 1_000])("a file that comes in pieces of %i bytes", (size) => {
  it("is cut at each line feed, and after the last line without one", () => {
    expect(shown(cut('{"a":1}\n{"b":2}\n{"c":3}', size))).toEqual([
      [1, '{"a":1}'],
      [2, '{"b":2}'],
      [3, '{"c":3}'],
    ]);
  });

  it("has blank lines that count and are none, ends with CR LF, and a mark before its first", () => {
    const marked = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from('{"a":1}\r\n\r\n \t\n{"é":2}\r\n\n')]);
    expect(shown(cut(marked, size))).toEqual([
      [1, '{"a":1}\r'],
      [4, '{"é":2}\r'],
    ]);
  });

  it("is cut the same from the end of any of its lines on", () => {
    const file = '{"a":1}\n\n{"b":2}\n{"c":33}\n';
    const all = cut(file, size);
    for (const [i, { number, end }] of all.entries()) {
      expect(cut(file, size, { offset: end, line: number })).toEqual(all.slice(i + 1));
    }
  });

  it("has a line that is too long, which is told and not held, and lines after it", () => {
    const long = "x".repeat(MOST + 1);
    expect(shown(cut(`a\n${long}\nb\n${long}`, size))).toEqual([
      [1, "a"],
      [2, undefined],
      [3, "b"],
      [4, undefined],
    ]);
    expect(shown(cut("x".repeat(MOST), size))).toEqual([[1, "x".repeat(MOST)]]);
  });
});

describe("a line cutter", () => {
  it("holds no more than its limit of a line that never ends", () => {
    const cutter = new LineCutter({ offset: 0, line: 0 }, MOST);
    const piece = Buffer.alloc(1024 * 1024, 0x61);
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < 100; i++) expect(cutter.push(Buffer.from(piece))).toEqual([]);
    expect(cutter.end()).toEqual([{ number: 1, end: 100 * 1024 * 1024, bytes: undefined }]);
    // The pieces themselves are garbage, some perhaps not collected yet.
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(100 * 1024 * 1024);
  });
});
