import { pino } from "pino";
import { afterEach, describe, expect, it, vi } from "vitest";
import { Lifecycle, stopOnSignal } from "./lifecycle.js";
import { delay } from "./retry.js";

describe("Lifecycle", () => {
  it("ends a second close with the first one, and closes what opened meanwhile", async () => {
    const lifecycle = new Lifecycle(pino({ level: "silent" }));
    const closed: string[] = [];
    let drain = (): void => undefined;
    lifecycle.onClose("first", () => void closed.push("first"));
    lifecycle.onClose("last", async () => {
      await new Promise<void>((resolve) => (drain = resolve));
      closed.push("last");
    });
    const first = lifecycle.close();
    lifecycle.onClose("late", () => void closed.push("late"));
    const second = lifecycle.close().then(() => closed.push("ended"));
    await delay(10);
    expect(closed).toEqual([]);
    drain();
    await first;
    await second;
    expect(closed).toEqual(["last", "first", "late", "ended"]);
  });
});

describe("stopOnSignal", () => {
  const before = [...process.listeners("SIGINT"), ...process.listeners("SIGTERM")];
  const added = () => process.listeners("SIGINT").find((one) => !before.includes(one));
  afterEach(() => {
    vi.restoreAllMocks();
    for (const signal of ["SIGINT", "SIGTERM"] as const)
      for (const one of process.listeners(signal)) if (!before.includes(one)) process.off(signal, one);
  });

  it("takes the echo of a signal for the same one, and a later signal for impatience", async () => {
    const exit = vi.spyOn(process, "exit").mockImplementation(() => undefined as never);
    const stop = vi.fn(() => new Promise<void>(() => undefined));
    stopOnSignal(pino({ level: "silent" }), stop);
    const interrupt = added();
    interrupt?.("SIGINT");
    interrupt?.("SIGINT");
    expect(stop).toHaveBeenCalledOnce();
    expect(exit).not.toHaveBeenCalled();
    await delay(350);
    interrupt?.("SIGINT");
    expect(exit).toHaveBeenCalledWith(1);
  });

  it("takes a signal for the first one if the process stops already by itself", async () => {
    const exit = vi.spyOn(process, "exit").mockImplementation(() => undefined as never);
    const stop = vi.fn(() => new Promise<void>(() => undefined));
    const leave = stopOnSignal(pino({ level: "silent" }), stop);
    leave("replaced");
    await delay(350);
    const interrupt = added();
    interrupt?.("SIGINT");
    leave("replaced");
    expect(stop).toHaveBeenCalledOnce();
    expect(exit).not.toHaveBeenCalled();
    await delay(350);
    interrupt?.("SIGINT");
    expect(exit).toHaveBeenCalledWith(1);
  });
});
