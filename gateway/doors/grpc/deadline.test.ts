import { afterEach, describe, expect, it, vi } from "vitest";
import { callAt, takeFarTimeout } from "./deadline.js";

const DAY_MS = 86_400_000;

describe("a far deadline", () => {
  it.each([
    ["2592000S", 30 * DAY_MS],
    ["720H", 30 * DAY_MS],
    ["99999999H", 99_999_999 * 3_600_000],
    // Such a number of ms has 32 bits that say 5 s.
    ["4294972S", 4_294_972_000],
  ])("of %s is taken out of the head", (text, ms) => {
    const headers = { "grpc-timeout": text, te: "trailers" };
    expect(takeFarTimeout(headers)).toBe(ms);
    expect(headers).toEqual({ te: "trailers" });
  });

  it.each(["2147483S", "99999999m", "1n", "0H", "100000000H", "5", "x", ""])("is not %j", (text) => {
    const headers = { "grpc-timeout": text };
    expect(takeFarTimeout(headers)).toBeUndefined();
    expect(headers).toEqual({ "grpc-timeout": text });
  });
});

describe("a call back", () => {
  afterEach(() => vi.useRealTimers());

  it.each([1, 5_000, 20 * DAY_MS, 30 * DAY_MS, 100 * DAY_MS])("comes after %d ms", (ms) => {
    vi.useFakeTimers();
    let calls = 0;
    callAt(
      Date.now() + ms,
      () => undefined,
      () => calls++,
    );
    vi.advanceTimersByTime(Math.max(0, ms - 1));
    expect(calls).toBe(0);
    vi.advanceTimersByTime(1);
    expect(calls).toBe(1);
    vi.advanceTimersByTime(200 * DAY_MS);
    expect(calls).toBe(1);
  });

  it("does not come once its last timer is cleared", () => {
    vi.useFakeTimers();
    let timer: NodeJS.Timeout | undefined;
    let calls = 0;
    callAt(
      Date.now() + 100 * DAY_MS,
      (armed) => (timer = armed),
      () => calls++,
    );
    vi.advanceTimersByTime(60 * DAY_MS);
    clearTimeout(timer);
    vi.advanceTimersByTime(60 * DAY_MS);
    expect(calls).toBe(0);
  });
});
