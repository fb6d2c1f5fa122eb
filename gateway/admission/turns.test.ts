import { describe, expect, it } from "vitest";
import { Turns, type Waiter } from "./turns.js";

const LIMITS = { bytes: 100, items: 4 };

interface Named extends Waiter {
  readonly name: string;
}

/**
 * @param all a word each: name, tenant, bytes and, for a step, the sequence
 * @returns the waiting requests, in the order of these words
 */
function waiting(...all: string[]) {
  const turns = new Turns<Named>(LIMITS);
  const add = (word: string, order: number, since = 0) => {
    const [name = "", tenant = "", bytes, sequence, weight] = word.split("|");
    turns.add({
      name,
      tenant,
      weight: weight === undefined ? undefined : Number(weight),
      bytes: Number(bytes),
      sequence,
      order,
      since,
    });
  };
  all.forEach((word, order) => add(word, order));
  const take = (size: "small" | "large") =>
    turns
      .next(size)
      .call.map(({ name }) => name)
      .join(" ");
  return { turns, add, take };
}

describe("turns", () => {
  it("keep the order of one tenant, in calls within the limits", () => {
    const { take } = waiting("a|t|10", "b|t|10", "c|t|10", "d|t|10", "e|t|60", "f|t|60");
    expect([take("small"), take("small"), take("small"), take("small")]).toEqual(["a b c d", "e", "f", ""]);
  });

  it("are given to each tenant, however many requests another one has", () => {
    const flood = Array.from({ length: 9 }, (_, i) => `f${i}|flood|1`);
    const { take } = waiting(...flood, "a|t|1", "b|u|1");
    expect([take("small"), take("small")]).toEqual(["f0 a b f1", "f2 f3 f4 f5"]);
  });

  it("give a tenant as many places as its weight says, and nobody none", () => {
    const heavy = Array.from({ length: 9 }, (_, i) => `h${i}|heavy|1||6`);
    const light = Array.from({ length: 9 }, (_, i) => `l${i}|light|1||2`);
    const { take } = waiting(...heavy, ...light);
    expect([take("small"), take("small")]).toEqual(["h0 l0 h1 h2", "h3 l1 h4 h5"]);
  });

  it.each([
    [{ a: 1, b: 60, c: 60 }],
    [{ a: 1, b: 100, c: 50 }],
    [{ a: 3, b: 4 }],
    [{ a: 5, b: 7, c: 10 }],
    [{ a: 1, b: 9_999 }],
  ])("share the places of many calls by weight: %o", (weights: Readonly<Record<string, number>>) => {
    const all = Object.entries(weights);
    const sum = all.reduce((total, [, weight]) => total + weight, 0);
    const turns = new Turns<Waiter>({ bytes: 1_000_000, items: 64 });
    const places = new Map<string, number>();
    for (let call = 0, order = 0; call < 50; call++) {
      for (const [tenant, weight] of all) {
        const had = places.get(tenant) ?? 0;
        // Each always has a call's worth of requests waiting.
        const missing = call === 0 ? 64 : had - (places.get(`${tenant} before`) ?? 0);
        places.set(`${tenant} before`, had);
        for (let i = 0; i < missing; i++) {
          turns.add({ tenant, weight, bytes: 1, sequence: undefined, order: order++, since: 0 });
        }
      }
      for (const { tenant } of turns.next("small").call) places.set(tenant, (places.get(tenant) ?? 0) + 1);
    }
    for (const [tenant, weight] of all) {
      expect(Math.abs((places.get(tenant) ?? 0) - (50 * 64 * weight) / sum)).toBeLessThanOrEqual(2);
    }
  });

  it("come round: who was served is behind those who were not", () => {
    const tenants = ["p", "q", "r", "s", "t", "u"];
    const { take } = waiting(...tenants.flatMap((tenant) => [`${tenant}1|${tenant}|1`, `${tenant}2|${tenant}|1`]));
    expect([take("small"), take("small"), take("small")]).toEqual(["p1 q1 r1 s1", "t1 u1 p2 q2", "r2 s2 t2 u2"]);
  });

  it("are not used up by tenants who have only what may not go", () => {
    const { add, take } = waiting("A|t|101", "B|u|101", "C|v|101|s", "D|w|101|r", "e|w|1|r", "H|y|101", "f|x|1");
    add("g|v|1|s", 10);
    expect(take("large")).toBe("A");
    expect(take("small")).toBe("f");
  });

  it("let one that does not fit begin the next call, and others go on", () => {
    const { take } = waiting("a|t|50", "b|u|60", "c|t|40", "d|v|5");
    expect([take("small"), take("small")]).toEqual(["a d c", "b"]);
  });

  it("keep large ones apart, one in a call, each tenant in turn", () => {
    const { take } = waiting("A|t|101", "B|t|101", "C|t|101", "D|u|101", "e|t|1");
    expect([1, 2, 3, 4, 5].map(() => take("large"))).toEqual(["A", "D", "B", "C", ""]);
    expect(take("small")).toBe("e");
  });

  it("let no tenant's large one wait for ever behind those of tenants that come anew", () => {
    const { add, take } = waiting("A|t|101", "B|t|101", "C|u|101");
    const taken = [];
    for (let i = 0; i < 6; i++) {
      taken.push(take("large"));
      add(`N${i}|n${i}|101`, 10 + i);
    }
    expect(taken.indexOf("B")).toBeGreaterThan(0);
  });

  it("keep steps of one sequence in order, whatever their sizes", () => {
    const { take } = waiting("a|t|1|s", "B|t|101|s", "c|t|1|s", "D|t|101|s", "e|t|1|other");
    expect(take("large")).toBe("");
    expect(take("small")).toBe("a e");
    // The call of `a` is under way.
    expect(take("large")).toBe("");
    expect(take("small")).toBe("");
    expect(take("large")).toBe("B");
    expect(take("small")).toBe("");
    expect(take("large")).toBe("");
    expect([take("small"), take("small"), take("large")]).toEqual(["c", "", "D"]);
  });

  it("hold steps back behind a call of the other kind whose end is not known", () => {
    const { turns, take } = waiting("A|t|101|s", "b|t|1|s", "c|t|1");
    expect(take("large")).toBe("A");
    turns.next("large", false);
    expect(take("small")).toBe("c");
    turns.next("large");
    expect(take("small")).toBe("b");
  });

  it("say when a call leaves steps to those of the other kind", () => {
    const { turns } = waiting("a|t|1|s", "B|t|101|s");
    expect([1, 2, 3].map(() => turns.next("small").frees)).toEqual([false, true, false]);
  });

  it("give one that comes again its place back", () => {
    const { add, take } = waiting("a|t|1", "b|t|1");
    add("again|t|1", -1);
    expect(take("small")).toBe("again a b");
  });

  it("send away those that have waited for too long, large ones later", () => {
    const { turns, add, take } = waiting();
    add("a|t|1", 0, 5);
    add("B|t|101", 1, 5);
    add("c|t|1", 2, 20);
    expect(turns.takeOverdue({ small: 10, large: 0 }).map(({ name }) => name)).toEqual(["a"]);
    expect([take("small"), take("large"), turns.isEmpty]).toEqual(["c", "B", true]);
  });

  it("send a step away no sooner than the large one that it came behind", () => {
    const { turns, add, take } = waiting();
    const overdue = (small: number, large: number) => turns.takeOverdue({ small, large }).map(({ name }) => name);
    add("A|t|101|s", 0, 5);
    add("b|t|1|s", 1, 5);
    add("c|t|1|other", 2, 5);
    expect(overdue(10, 0)).toEqual(["c"]);
    expect(take("large")).toBe("A");
    add("d|t|1|s", 3, 5);
    expect(overdue(10, 0)).toEqual([]);
    // The large step is over, and the other steps have their turn.
    expect(take("large")).toBe("");
    expect(overdue(10, 0)).toEqual([]);
    expect(take("small")).toBe("b d");
    add("e|t|1|s", 4, 5);
    expect(overdue(10, 0)).toEqual(["e"]);
    add("F|t|101|s", 5, 5);
    add("g|t|1|s", 6, 5);
    expect(overdue(10, 10)).toEqual(["F", "g"]);
  });
});
