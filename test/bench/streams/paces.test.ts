import { describe, expect, it } from "vitest";
import { pacesOf } from "./paces.js";

function stream(sentAt: number, ...events: [index: number, at: number][]) {
  return { sentAt, events: events.map(([index, at]) => ({ index, at, text: "", finish: null })) };
}

describe("pacesOf", () => {
  it("counts what came between the two times", () => {
    const paces = pacesOf([stream(90, [0, 95], [1, 100], [2, 110], [3, 130], [4, 200])], 100, 200);
    expect(paces).toEqual({ tokens: 3, firstMs: [], betweenMs: [5, 10, 20], meanMs: [] });
  });

  it("times streams that were asked for between them, whenever their tokens came", () => {
    const paces = pacesOf([stream(100, [0, 107]), stream(199, [0, 230], [1, 231]), stream(200, [0, 201])], 100, 200);
    expect(paces).toEqual({ tokens: 1, firstMs: [7, 31], betweenMs: [], meanMs: [1] });
  });

  it("shares an event's time among the tokens that it brought", () => {
    expect(pacesOf([stream(0, [1, 10], [4, 22])], 0, 100)).toEqual({
      tokens: 5,
      firstMs: [10],
      betweenMs: [4, 4, 4],
      meanMs: [4],
    });
  });
});
