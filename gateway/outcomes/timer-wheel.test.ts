import { describe, expect, it } from "vitest";
import { TimerWheel } from "./timer-wheel.js";

describe("TimerWheel", () => {
  it("gives what is due, longest due first, and nothing before its time or twice", () => {
    const wheel = new TimerWheel<string>(1_000);
    wheel.set("late", 1_100);
    wheel.set("early", 1_030);
    wheel.set("middle", 1_060);
    expect(wheel.takeDue(1_029)).toEqual([]);
    expect(wheel.takeDue(1_099)).toEqual(["early", "middle"]);
    expect(wheel.takeDue(1_100)).toEqual(["late"]);
    expect(wheel.takeDue(10_000)).toEqual([]);
  });

  it("gives what was already due when it was set, also before the time it began at", () => {
    const wheel = new TimerWheel<string>(1_000);
    expect(wheel.takeDue(2_000)).toEqual([]);
    wheel.set("past", 500);
    expect(wheel.takeDue(2_001)).toEqual([]); // its slot ends later
    expect(wheel.takeDue(2_005)).toEqual(["past"]);
  });

  it("moves what is set again, and forgets what is deleted", () => {
    const wheel = new TimerWheel<string>(0);
    for (const item of ["sooner", "later", "gone"]) wheel.set(item, 100);
    wheel.set("sooner", 50);
    wheel.set("later", 200);
    wheel.delete("gone");
    wheel.delete("never there");
    expect([wheel.has("sooner"), wheel.has("gone")]).toEqual([true, false]);
    expect(wheel.takeDue(100)).toEqual(["sooner"]);
    expect(wheel.has("sooner")).toBe(false);
    expect(wheel.takeDue(200)).toEqual(["later"]);
  });

  it("gives no more than it is asked for, and keeps the rest due, in order", () => {
    const wheel = new TimerWheel<number>(0);
    for (let i = 0; i < 6; i++) wheel.set(i, 10 + 5 * (i >> 1));
    expect(wheel.takeDue(100, 0)).toEqual([]);
    expect(wheel.takeDue(100, 3)).toEqual([0, 1, 2]);
    wheel.set(6, 0);
    expect(wheel.takeDue(100, 3)).toEqual([3, 6, 4]);
    expect(wheel.takeDue(100, 3)).toEqual([5]);
    wheel.set(7, 200);
    expect(wheel.takeDue(199, 3)).toEqual([]);
    expect(wheel.takeDue(200, 3)).toEqual([7]);
  });

  it("starves none of many items that are set again each time", () => {
    const wheel = new TimerWheel<number>(0);
    const taken = Array.from({ length: 2_000 }, () => 0);
    for (const item of taken.keys()) wheel.set(item, item % 50);
    for (let now = 0; now <= 10_000; now += 25) {
      for (const item of wheel.takeDue(now)) {
        taken[item] = (taken[item] ?? 0) + 1;
        wheel.set(item, now + 100);
      }
    }
    expect(Math.max(...taken) - Math.min(...taken)).toBeLessThanOrEqual(1);
    expect(Math.min(...taken)).toBeGreaterThan(90);
  });
});
