import { describe, expect, it } from "vitest";
import { MAX_PAUSE_MS, planPause, planPreemption, planPrefill } from "./plan.js";

function task(order: number, left: number, bytes = 0, begun = false) {
  return { order, left, bytes, begun, interrupted: false };
}

function interrupted(order: number, left: number) {
  return { ...task(order, left), interrupted: true };
}

type Task = ReturnType<typeof task>;

/** The plan for the tasks of one tenant. */
function planned(tasks: readonly Task[], budget: number, room: number, alone: boolean) {
  return tokensOf(planPrefill([tasks], budget, room, alone));
}

function tokensOf(plan: ReturnType<typeof planPrefill<Task>>) {
  return plan.map(({ task, tokens }) => [task.order, tokens]);
}

describe("planPrefill", () => {
  it.each([
    ["nothing to do", [], []],
    ["one alone gets all of it", [task(1, 1_000)], [[1, 100]]],
    ["no more than it needs", [task(1, 30)], [[1, 30]]],
    [
      "the oldest gets half, the shortest the rest",
      [task(1, 1_000), task(2, 900), task(3, 20)],
      [
        [1, 50],
        [3, 20],
        [2, 30],
      ],
    ],
    [
      "what others leave goes back to the oldest",
      [task(1, 1_000), task(2, 10)],
      [
        [1, 90],
        [2, 10],
      ],
    ],
    [
      "age, not place, decides",
      [task(5, 1_000), task(4, 1_000)],
      [
        [4, 50],
        [5, 50],
      ],
    ],
    [
      "interrupted streams have more than new ones, and go first",
      [task(1, 1_000), task(2, 10), interrupted(3, 200), interrupted(4, 100)],
      [
        [1, 50],
        [4, 100],
        [3, 200],
      ],
    ],
    [
      "interrupted streams have it as they came, however long they are",
      [interrupted(1, 50), interrupted(2, 2_500), interrupted(3, 900)],
      [
        [1, 50],
        [2, 2_500],
        [3, 650],
      ],
    ],
    [
      "what few of them leave is for new ones as ever",
      [task(1, 1_000), task(2, 30), interrupted(3, 10)],
      [
        [1, 60],
        [3, 10],
        [2, 30],
      ],
    ],
    ["however many they are, there is an end to it", [interrupted(1, 5_000), task(2, 1)], [[1, 3_200]]],
  ] as const)("%s", (_, tasks, expected) => {
    const chunks = planned([...tasks], 100, Infinity, false);
    expect(new Map(chunks as [number, number][])).toEqual(new Map(expected as unknown as [number, number][]));
  });

  it("begins nothing that finds no room, nor anything younger", () => {
    expect(planned([task(1, 10, 50), task(2, 10, 5)], 100, 20, false)).toEqual([]);
    expect(planned([task(1, 10, 10), task(2, 10, 50), task(3, 10, 5)], 100, 20, false)).toEqual([[1, 10]]);
  });

  it("lets what has begun go on, and the oldest begin when nothing else holds memory", () => {
    expect(planned([task(1, 10, 50, true)], 100, 0, false)).toEqual([[1, 10]]);
    expect(planned([task(1, 10, 50), task(2, 10, 1)], 100, 0, true)).toEqual([[1, 10]]);
  });
});

describe("planPrefill for several tenants", () => {
  it.each([
    ["the next tenant has all of the budget that it needs", [[task(2, 1_000)], [task(1, 5)]], [[2, 100]]],
    [
      "the tenants behind have the rest, by the same rule",
      [[task(3, 40)], [task(1, 500), task(2, 10)], [task(0, 5)]],
      [
        [3, 40],
        [1, 50],
        [2, 10],
      ],
    ],
    [
      "interrupted streams go first, whose ever they are, in order of age",
      [[task(3, 1_000), task(4, 10)], [interrupted(2, 60)], [interrupted(1, 30)]],
      [
        [3, 50],
        [1, 30],
        [2, 60],
      ],
    ],
  ] as const)("%s", (_, turns, expected) => {
    expect(tokensOf(planPrefill<Task>(turns, 100, Infinity, false))).toEqual(expected);
  });

  it("begins what has room in the order of turns; nothing overtakes what finds none but what has begun", () => {
    const turns = [[task(3, 10, 50)], [task(1, 10, 5), task(2, 10, 50, true)]];
    expect(tokensOf(planPrefill(turns, 100, 20, false))).toEqual([[2, 10]]);
    expect(tokensOf(planPrefill(turns, 100, 60, false))).toEqual([
      [3, 10],
      [1, 10],
      [2, 10],
    ]);
    expect(tokensOf(planPrefill([[task(2, 10, 50)], [task(1, 10, 5)]], 100, 0, true))).toEqual([[2, 10]]);
  });
});

describe("planPause", () => {
  const waits = (tasks: readonly Task[], decodedAgoMs: number) =>
    planPause(planPrefill([tasks], 100, 20, false), decodedAgoMs);

  it.each([
    ["for an interrupted stream", true, [task(1, 50), interrupted(2, 200)], MAX_PAUSE_MS - 1],
    ["no longer than a while", false, [interrupted(1, 200)], MAX_PAUSE_MS],
    ["for no new ones", false, [task(1, 50)], 0],
    ["for nobody who finds no room", false, [task(1, 50, 50), interrupted(2, 200)], 0],
    ["for nobody when all is computed", false, [], 0],
  ] as const)("those that run wait %s", (_, expected, tasks, decodedAgoMs) => {
    expect(waits([...tasks], decodedAgoMs)).toBe(expected);
  });
});

describe("planPreemption", () => {
  const holders = [
    { order: 3, bytes: 10 },
    { order: 1, bytes: 100 },
    { order: 2, bytes: 10 },
  ];

  it.each([
    [0, []],
    [5, [3]],
    [15, [3, 2]],
    [500, [3, 2]],
  ])("%i bytes too many", (excess, orders) => {
    expect(planPreemption(holders, excess).map(({ order }) => order)).toEqual(orders);
  });
});
