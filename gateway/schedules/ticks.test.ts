import { CronExpressionParser } from "cron-parser";
import { describe, expect, it } from "vitest";
import { cronFault, newestTick, take, tickAfter, ticksAfter, type Rhythm } from "./ticks.js";

const at = (text: string) => Date.parse(text);
const HOUR = 3_600_000;

function ticks(rhythm: Rhythm, from: string, to: string): string[] {
  const found: number[] = [];
  for (const tick of ticksAfter(rhythm, at(from) - 1)) {
    if (tick > at(to)) break;
    found.push(tick);
  }
  return found.map((tick) => new Date(tick).toISOString().replace(":00.000Z", "Z"));
}

describe("where clocks are set forward", () => {
  // 29 March 2026: after 01:59 comes 03:00, at 01:00 UTC.
  const berlin = (cron: string) => ticks({ cron, timezone: "Europe/Berlin" }, "2026-03-29T00:00Z", "2026-03-29T02:00Z");

  it("a skipped time comes once, at that moment", () => {
    expect(berlin("30 2 * * *")).toEqual(["2026-03-29T01:00Z"]);
    expect(berlin("*/5 2 * * *")).toEqual(["2026-03-29T01:00Z"]);
    expect(berlin("15,45 2,3 * * *")).toEqual(["2026-03-29T01:00Z", "2026-03-29T01:15Z", "2026-03-29T01:45Z"]);
    expect(berlin("0 2,3 * * *")).toEqual(["2026-03-29T01:00Z"]);
  });

  it("every hour is every hour", () => {
    expect(berlin("30 * * * *")).toEqual(["2026-03-29T00:30Z", "2026-03-29T01:30Z"]);
  });

  it("a midnight may be skipped, too", () => {
    const sao = { cron: "0 0 * * *", timezone: "America/Sao_Paulo" };
    expect(ticks(sao, "2018-11-03T00:00Z", "2018-11-05T23:00Z")).toEqual([
      "2018-11-03T03:00Z",
      "2018-11-04T03:00Z",
      "2018-11-05T02:00Z",
    ]);
    // In Nuuk, clocks change from Saturday 22:59 to Sunday 00:00.
    const nuuk = { cron: "30 23 * * 6", timezone: "America/Nuuk" };
    expect(ticks(nuuk, "2025-03-29T12:00Z", "2025-04-06T12:00Z")).toEqual(["2025-03-30T01:00Z", "2025-04-06T00:30Z"]);
  });

  it("by half an hour", () => {
    const lord = { cron: "15 2 * * *", timezone: "Australia/Lord_Howe" };
    expect(ticks(lord, "2026-10-03T00:00Z", "2026-10-05T00:00Z")).toEqual(["2026-10-03T15:30Z", "2026-10-04T15:15Z"]);
    const newYork = { cron: "30 2 * * *", timezone: "America/New_York" };
    expect(ticks(newYork, "2026-03-08T00:00Z", "2026-03-09T12:00Z")).toEqual([
      "2026-03-08T07:00Z",
      "2026-03-09T06:30Z",
    ]);
  });
});

describe("where clocks are set back", () => {
  // 25 October 2026: after 02:59 comes 02:00, at 01:00 UTC.
  const berlin = (cron: string) => ticks({ cron, timezone: "Europe/Berlin" }, "2026-10-25T00:00Z", "2026-10-25T02:10Z");

  it("what comes twice counts once", () => {
    expect(berlin("30 2 * * *")).toEqual(["2026-10-25T00:30Z"]);
    expect(berlin("15,45 2,3 * * *")).toEqual(["2026-10-25T00:15Z", "2026-10-25T00:45Z"]);
    expect(tickAfter({ cron: "30 2 * * *", timezone: "Europe/Berlin" }, at("2026-10-25T00:45Z"))).toBe(
      at("2026-10-26T01:30Z"),
    );
  });

  it("every hour is every hour", () => {
    expect(berlin("30 * * * *")).toEqual(["2026-10-25T00:30Z", "2026-10-25T01:30Z"]);
  });

  it("by half an hour", () => {
    const lord = { cron: "45 1 * * *", timezone: "Australia/Lord_Howe" };
    expect(ticks(lord, "2026-04-04T00:00Z", "2026-04-06T00:00Z")).toEqual(["2026-04-04T14:45Z", "2026-04-05T15:15Z"]);
    const newYork = { cron: "30 1 * * *", timezone: "America/New_York" };
    expect(ticks(newYork, "2026-11-01T00:00Z", "2026-11-02T12:00Z")).toEqual([
      "2026-11-01T05:30Z",
      "2026-11-02T06:30Z",
    ]);
  });
});

describe("through a whole year of clocks", () => {
  const zones = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kathmandu"];
  /** The local time minute by minute. */
  const shown = (timezone: string, date: string) => {
    const format = new Intl.DateTimeFormat("en-CA", {
      timeZone: timezone,
      dateStyle: "short",
      timeStyle: "short",
      hourCycle: "h23",
    });
    const found = new Map<string, number[]>();
    for (let instant = at(date) - 15 * HOUR; instant < at(date) + 39 * HOUR; instant += 60_000) {
      const [day = "", time = ""] = format.format(instant).split(", ");
      if (day !== date) continue;
      found.set(time, [...(found.get(time) ?? []), instant]);
    }
    return found;
  };

  it.each(zones)("in %s every date has its run of each time of day", (timezone) => {
    for (const date of ["2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25", "2026-11-01"]) {
      const times = shown(timezone, date);
      for (const [hour, minute] of [0, 1, 2, 3, 12, 23].flatMap((one) =>
        [0, 15, 30, 59].map((other) => [one, other] as const),
      )) {
        const rhythm = { cron: `${minute} ${hour} * * *`, timezone };
        const two = [hour, minute].map((part) => String(part).padStart(2, "0")).join(":");
        const [first] = times.get(two) ?? [];
        const all = [...times.values()].flat();
        const bounds = { from: Math.min(...all), to: Math.max(...all) };
        const found = take(ticksAfter(rhythm, bounds.from - 1), 3).filter((tick) => tick <= bounds.to);
        expect(found, `${date} ${two}`).toHaveLength(1);
        if (first !== undefined) expect(found, `${date} ${two}`).toEqual([first]);
      }
    }
  });

  it.each(zones)("in %s the newest tick is the last of those that come", (timezone) => {
    for (const cron of ["30 2 * * *", "*/20 * * * *", "15,45 1-3 * * *", "0 0 * * 0", "59 23 1,15 * *"]) {
      const rhythm = { cron, timezone };
      const from = at("2026-01-01");
      const known = take(ticksAfter(rhythm, from - 1), 4_000);
      for (let i = 1; i < known.length; i += 37) {
        const [before = 0, tick = 0] = known.slice(i - 1);
        expect(newestTick(rhythm, from, tick)).toBe(tick);
        expect(newestTick(rhythm, from, tick - 1)).toBe(before);
        expect(newestTick(rhythm, tick, tick - 1)).toBeUndefined();
      }
    }
  });
});

it("days are those of cron-parser", () => {
  const crons = [
    "5 4 */2 * 1",
    "0 0 1,15 * 5",
    "0 12 * 2-4 mon-fri",
    "1 2 31 * *",
    "0 0 29 2 *",
    "7 7 1-7 */3 7",
    "0 0 * * 1-5/2",
  ];
  for (const cron of crons) {
    const theirs = CronExpressionParser.parse(cron, { tz: "UTC", currentDate: new Date("2026-01-01T00:00Z") });
    const expected = theirs.take(20).map((date) => date.getTime());
    expect(take(ticksAfter({ cron, timezone: "UTC" }, at("2026-01-01T00:00Z")), 20), cron).toEqual(expected);
  }
});

describe("what is no schedule", () => {
  it.each([
    ["* * * * * *", "not 6"],
    ["* * * *", "not 4"],
    ["", "not 1"],
    ["@daily", "@"],
    ["0 0 30 2 *", "no such date"],
    ["0 0 31 4,6,9,11 *", "no such date"],
    ["60 * * * *", "Constraint"],
    ["0 24 * * *", "Constraint"],
    ["0 0 0 * *", "Constraint"],
    ["0 0 * * 8", "Constraint"],
    ["0 0 L * *", "'L'"],
    ["H * * * *", "'H'"],
    ["0 0 ? * 1", "'?'"],
    ["0 0 * * 5#3", "'5#3'"],
    ["*/0 * * * *", "repeat"],
    ["5-1 * * * *", "min"],
    ["1,,2 * * * *", "list"],
    [`${"1,".repeat(200)}1 * * * *`, "256"],
  ])("%s", (cron, said) => {
    expect(cronFault(cron)).toContain(said);
  });

  it.each(["30 9 * * 1-5", "*/15 * * * *", "0 0 29 2 *", "0 0 1 jan *", "0 9 * * MON,wed", " 0  0 30 2 1 "])(
    "%s is one",
    (cron) => {
      expect(cronFault(cron)).toBeUndefined();
    },
  );
});

describe("an interval", () => {
  const rhythm = { every: 1_500, anchor: 10_000 };
  it("counts from its anchor", () => {
    expect(take(ticksAfter(rhythm, 0), 3)).toEqual([10_000, 11_500, 13_000]);
    expect(tickAfter(rhythm, 11_500)).toBe(13_000);
    expect(newestTick(rhythm, 0, 12_999)).toBe(11_500);
    expect(newestTick(rhythm, 11_501, 12_999)).toBeUndefined();
    expect(newestTick(rhythm, 0, 9_999)).toBeUndefined();
  });
});

it("29 February comes after eight years at the latest", () => {
  expect(tickAfter({ cron: "0 0 29 2 *", timezone: "UTC" }, at("2096-03-01"))).toBe(at("2104-02-29"));
});
