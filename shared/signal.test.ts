import { describe, expect, it } from "vitest";
import { Signal } from "./signal.js";

describe("Signal", () => {
  it("wakes the one who waits", async () => {
    const signal = new Signal();
    const waiting = signal.wait(Infinity);
    signal.notify();
    await waiting;
  });

  it("does not lose a notification that came first", async () => {
    const signal = new Signal();
    signal.notify();
    signal.notify();
    await signal.wait(Infinity);
  });

  it("gives up at the given time, not before it", async () => {
    const signal = new Signal();
    const until = performance.now() + 3.3;
    await signal.wait(until);
    expect(performance.now()).toBeGreaterThanOrEqual(until);
  });

  it("returns at once when the time has passed", async () => {
    await new Signal().wait(performance.now() - 1);
  });
});
