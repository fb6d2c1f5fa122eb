import { describe, expect, it } from "vitest";
import { LookTimes, type Timed } from "./look-times.js";

/** Opens this many requests at 0. */
function opened(count: number, isBusUp: boolean, isAnsweredElsewhere = false) {
  const times = new LookTimes<Timed>(0);
  const items = Array.from({ length: count }, () => ({ openedAt: 0, isAnsweredElsewhere }));
  for (const item of items) times.plan(item, isBusUp, 0);
  return { times, items };
}

/**
 * Lets time pass in ticks of 25 ms. Looks find nothing; the result counts the looks at each
 * request.
 */
function pass(times: LookTimes<Timed>, from: number, until: number, isBusUp: boolean): Map<Timed, number> {
  const looks = new Map<Timed, number>();
  for (let now = from; now <= until; now += 25) {
    for (const item of times.takeDue(now)) {
      looks.set(item, (looks.get(item) ?? 0) + 1);
      times.plan(item, isBusUp, now);
    }
  }
  return looks;
}

function sum(looks: Map<Timed, number>): number {
  return [...looks.values()].reduce((total, one) => total + one, 0);
}

describe("LookTimes", () => {
  it.each([100, 2_000, 50_000])("makes 10 spot checks a second while nothing is amiss, with %i open", (count) => {
    const { times } = opened(count, true);
    expect(sum(pass(times, 0, 10_000, true))).toBeGreaterThan(90);
    expect(sum(pass(times, 10_025, 20_000, true))).toBeLessThanOrEqual(100);
  });

  it("spreads spot checks over all that are open", () => {
    const { times } = opened(50, true);
    const looks = pass(times, 0, 20_000, true);
    expect(looks.size).toBe(50);
    expect(Math.max(...looks.values()) - Math.min(...looks.values())).toBeLessThanOrEqual(1);
  });

  it("checks a few open requests about twice a second", () => {
    const { times } = opened(5, true);
    const looks = pass(times, 0, 10_000, true);
    expect(Math.min(...looks.values())).toBeGreaterThanOrEqual(15);
  });

  it.each([1, 10_000])("looks at each of %i at least ten times a second while NATS is down", (count) => {
    const { times, items } = opened(count, true);
    for (const item of items) times.plan(item, false, 20_000);
    const looks = pass(times, 20_025, 21_000, false);
    expect(looks.size).toBe(count);
    expect(Math.min(...looks.values())).toBeGreaterThanOrEqual(10);
    expect(Math.max(...looks.values())).toBeLessThanOrEqual(14);
  });

  it("looks at what another gateway is answered for, and at no other", () => {
    const { times } = opened(50, true, true);
    for (let i = 0; i < 1_000; i++) times.plan({ openedAt: 0, isAnsweredElsewhere: false }, true, 0);
    const looks = [...pass(times, 0, 10_000, true)];
    const elsewhere = looks.filter(([item]) => item.isAnsweredElsewhere).map(([, count]) => count);
    expect(elsewhere).toHaveLength(50);
    expect(Math.min(...elsewhere)).toBeGreaterThan(20);
    expect(sum(new Map(looks.filter(([item]) => !item.isAnsweredElsewhere)))).toBeLessThanOrEqual(110);
  });

  it("looks at all once when there is a reason, and ten times a second however often there is one", () => {
    const { times } = opened(2_000, true);
    pass(times, 0, 1_000, true);
    times.wantAll();
    expect(times.takeDue(1_025).length).toBeGreaterThanOrEqual(2_000);
    let all = 0;
    for (let now = 1_050; now <= 2_025; now += 25) {
      times.wantAll();
      const due = times.takeDue(now);
      if (due.length >= 2_000) all++;
      for (const item of due) times.plan(item, true, now);
    }
    expect(all).toBe(10);
    expect(times.takeDue(10_000).length).toBeLessThanOrEqual(2_005);
  });

  it("takes no request twice at a time, and none that was removed", () => {
    const { times, items } = opened(10, true);
    times.wantAll();
    const due = times.takeDue(600);
    expect(new Set(due).size).toBe(due.length);
    for (const item of due) times.plan(item, true, 600);
    for (const item of items) times.remove(item);
    times.wantAll();
    expect(times.takeDue(10_000)).toEqual([]);
  });

  it("keeps what was asked for during a look, and repeats a look that failed", () => {
    const { times, items } = opened(1, true);
    const [item] = items;
    if (item === undefined) throw new Error("one was opened");
    times.wantSoon(item);
    times.plan(item, true, 0);
    expect(times.takeDue(5)).toEqual([item]);
    times.planRetry(item, 5);
    expect(times.takeDue(100)).toEqual([]);
    expect(times.takeDue(105)).toEqual([item]);
    times.remove(item);
    times.planRetry(item, 105);
    expect(times.takeDue(1_000)).toEqual([]);
  });
});
