import { describe, expect, it } from "vitest";
import { Progress, START } from "./progress.js";

const line = (number: number) => ({ number, end: 10 * number, bytes: Buffer.alloc(0) });

describe("the progress of a batch", () => {
  it("advances to the end of the last line before which all are done", () => {
    const progress = new Progress(START);
    for (const number of [1, 3, 4, 7]) expect(progress.read(line(number))).toBe(true);
    progress.done(3);
    progress.done(7);
    expect(progress.checkpoint()).toEqual({ offset: 0, line: 0, beyond: [3, 7] });
    progress.done(1);
    expect(progress.checkpoint()).toEqual({ offset: 30, line: 3, beyond: [7] });
    expect(progress.window).toBe(2);
    progress.done(4);
    expect(progress.checkpoint()).toEqual({ offset: 70, line: 7, beyond: [] });
    expect(progress.window).toBe(0);
  });

  it("goes on from a checkpoint without the lines that were done beyond it", () => {
    const progress = new Progress({ offset: 30, line: 3, beyond: [5, 9] });
    expect(progress.read(line(4))).toBe(true);
    expect(progress.read(line(5))).toBe(false);
    expect(progress.checkpoint()).toEqual({ offset: 30, line: 3, beyond: [5, 9] });
    progress.done(4);
    expect(progress.checkpoint()).toEqual({ offset: 50, line: 5, beyond: [9] });
    expect(progress.read(line(9))).toBe(false);
    expect(progress.checkpoint()).toEqual({ offset: 90, line: 9, beyond: [] });
  });
});
