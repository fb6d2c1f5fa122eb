import { expect, it } from "vitest";
import { EndCounters } from "./ended-jobs.js";

/** The counters that are not 0. */
function counting() {
  const counters = new EndCounters();
  return (models: readonly string[], ends: Readonly<Record<string, number>>) => {
    const loads = new Map(
      Object.entries(ends).map(([name, requests]) => [`e:${name.replace(" ", ":")}`, { requests, bytes: 0 }]),
    );
    const shown = counters.take(loads, new Set(models)).filter(({ count }) => count > 0);
    return Object.fromEntries(shown.map(({ model, state, count }) => [`${state} ${model}`, count]));
  };
}

it("never falls, and counts on from there if Redis has lost some ends", () => {
  const take = counting();
  expect(take(["m"], { "failed m": 7 })).toEqual({ "failed m": 7 });
  expect(take(["m"], { "failed m": 5 })).toEqual({ "failed m": 7 });
  expect(take(["m"], { "failed m": 6 })).toEqual({ "failed m": 8 });
});

it("shows gone models together, which does not jump when a model goes or its ends are moved", () => {
  const take = counting();
  const all = { "failed m": 7, "failed gone": 2, "completed gone": 1 };
  expect(take(["m"], all)).toEqual({ "failed m": 7, "failed _other": 2, "completed _other": 1 });
  expect(take([], all)).toEqual({ "failed _other": 2, "completed _other": 1 });
  const moved = { "failed _other": 9, "completed _other": 1 };
  expect(take([], moved)).toEqual({ "failed _other": 2, "completed _other": 1 });
  // A late end of a model that is gone.
  expect(take([], { ...moved, "failed m": 1 })).toEqual({ "failed _other": 3, "completed _other": 1 });
  expect(take(["m"], { ...moved, "failed m": 1 })).toMatchObject({ "failed m": 1, "failed _other": 3 });
});
