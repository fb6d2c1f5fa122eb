import { expect, it } from "vitest";
import { elementFault, stringElements } from "./strings.js";

const tensorOf = (...elements: (string | number[])[]): Buffer =>
  Buffer.concat(
    elements.flatMap((element) => {
      const bytes = Buffer.from(element as string);
      const length = Buffer.alloc(4);
      length.writeUInt32LE(bytes.length);
      return [length, bytes];
    }),
  );
const long = "a".repeat(70_000);

it("strings that a model can be given have no fault, and come out as they are", () => {
  for (const strings of [[], [""], ["", "a", ""], ["Öncè", long, "\u{1F600}"]]) {
    expect(elementFault(tensorOf(...strings))).toBeUndefined();
    expect(stringElements(tensorOf(...strings))).toEqual(strings);
  }
});

it.each([
  ["a NUL", tensorOf("", "a", "b\0c"), { index: 2, fault: expect.stringContaining("NUL") }],
  ["a NUL after other letters", tensorOf("é\0"), { index: 0, fault: expect.stringContaining("NUL") }],
  ["a NUL in a long one", tensorOf("", `${long}\0`), { index: 1, fault: expect.stringContaining("NUL") }],
  ["half a letter", tensorOf("é", [0xc3], "\0"), { index: 1, fault: expect.stringContaining("UTF-8") }],
  ["a letter in two halves", tensorOf([0xc3], [0xa9]), { index: 0, fault: expect.stringContaining("UTF-8") }],
])("the first fault is found: %s", (_, data, found) => {
  expect(elementFault(data)).toEqual(found);
});

it("sixteen million empty strings are looked at without an array of them", () => {
  const before = process.memoryUsage().heapUsed;
  expect(elementFault(Buffer.alloc(64 * 1024 * 1024))).toBeUndefined();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(16 * 1024 * 1024);
});
