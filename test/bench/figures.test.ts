import { describe, expect, it } from "vitest";
import { figuresOf, printFigures } from "./figures.js";

interface Round {
  readonly cost: number;
}

const of = ({ cost }: Partial<Round>) => cost;
const rounds = [{ cost: 4 }, { cost: 2 }, { cost: 90 }];

describe("figuresOf", () => {
  it("judges the median where there is a limit", () => {
    const figures = figuresOf<Round>(
      [
        { name: "kept", most: 4, of },
        { name: "missed", most: 3, goal: "few", of },
        { name: "not judged", of },
      ],
      rounds,
    );
    expect(figures.map(({ goal, met, median }) => [goal, met, median])).toEqual([
      ["≤ 4", true, 4],
      ["few", false, 4],
      ["", undefined, 4],
    ]);
  });

  it("does not call a goal met by less than it is about", () => {
    const wanted = [4, 3].map((most) => ({ name: "part", most, canMeet: false, of }));
    expect(figuresOf<Round>(wanted, rounds).map(({ met }) => met)).toEqual([undefined, false]);
  });

  it("leaves out what no round has measured", () => {
    expect(figuresOf<Round>([{ name: "none", of }], [{}, { cost: Number.NaN }])).toEqual([]);
  });
});

it("prints what was met, and every round's value", () => {
  const figures = figuresOf<Round>([{ name: "cost", most: 3, of }], rounds);
  expect(printFigures(figures)).toBe("      median  goal  met  rounds\ncost    4.00  ≤ 3   no   4.00  2.00  90.0");
});
