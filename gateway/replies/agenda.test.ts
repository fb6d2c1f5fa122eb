import { describe, expect, it } from "vitest";
import { Agenda } from "./agenda.js";

describe("Agenda", () => {
  it("gives whoever is due, longest due first, and nobody before its time or twice", () => {
    const agenda = new Agenda<string>(1_000);
    agenda.set("late", 1_100);
    agenda.set("early", 1_030);
    agenda.set("middle", 1_060);
    expect(agenda.takeDue(1_029)).toEqual([]);
    expect(agenda.takeDue(1_099)).toEqual(["early", "middle"]);
    expect(agenda.takeDue(1_100)).toEqual(["late"]);
    expect(agenda.takeDue(10_000)).toEqual([]);
  });

  it("gives what was already due when it was entered, also before the time it began at", () => {
    const agenda = new Agenda<string>(1_000);
    expect(agenda.takeDue(2_000)).toEqual([]);
    agenda.set("past", 500);
    expect(agenda.takeDue(2_001)).toEqual([]); // its slot ends later
    expect(agenda.takeDue(2_005)).toEqual(["past"]);
  });

  it("moves what is entered again, and forgets what is deleted", () => {
    const agenda = new Agenda<string>(0);
    for (const item of ["sooner", "later", "gone"]) agenda.set(item, 100);
    agenda.set("sooner", 50);
    agenda.set("later", 200);
    agenda.delete("gone");
    agenda.delete("never there");
    expect([agenda.has("sooner"), agenda.has("gone")]).toEqual([true, false]);
    expect(agenda.takeDue(100)).toEqual(["sooner"]);
    expect(agenda.has("sooner")).toBe(false);
    expect(agenda.takeDue(200)).toEqual(["later"]);
  });

  it("starves nobody of many who are entered again each time", () => {
    const agenda = new Agenda<number>(0);
    const taken = Array.from({ length: 2_000 }, () => 0);
    for (const item of taken.keys()) agenda.set(item, item % 50);
    for (let now = 0; now <= 10_000; now += 25) {
      for (const item of agenda.takeDue(now)) {
        taken[item] = (taken[item] ?? 0) + 1;
        agenda.set(item, now + 100);
      }
    }
    expect(Math.max(...taken) - Math.min(...taken)).toBeLessThanOrEqual(1);
    expect(Math.min(...taken)).toBeGreaterThan(90);
  });
});
