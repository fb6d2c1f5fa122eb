import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { watchLoading } from "./watch-loading.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** The lines of a watch over a process that loads for so many minutes. */
function said(minutes: number): string[] {
  const lines: string[] = [];
  let hasLoaded = false;
  watchLoading({
    isLoading: () => !hasLoaded,
    onLate: (now) => lines.push(`late ${now}`),
    onOver: (now) => lines.push(`over ${now}`),
  });
  vi.advanceTimersByTime((minutes + 0.5) * 60_000);
  hasLoaded = true;
  vi.advanceTimersByTime(60 * 60_000);
  expect(vi.getTimerCount()).toBe(0);
  return lines;
}

it("says nothing of a process that loads in time", () => {
  expect(said(0)).toEqual([]);
});

it("says each minute that a process still loads", () => {
  expect(said(2)).toEqual(["late 1", "late 2"]);
});

it("gives a process up that never ends", () => {
  expect(said(60).slice(-2)).toEqual(["late 14", "over 15"]);
});
