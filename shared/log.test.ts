import { describe, expect, it } from "vitest";
import { levelFor, LogLevel } from "./log.js";

describe("the level of the log", () => {
  it.each([
    [1, "info", "debug"],
    [4, "error", "debug"],
    [0, "info", "info"],
    [0, "warn", "warn"],
    [0, "debug", "info"],
    [undefined, "debug", "debug"],
    [undefined, "warn", "warn"],
  ])("for the verbosity %s, with the setting %s, is %s", (verbosity, usual, level) => {
    expect(levelFor(verbosity, usual)).toBe(level);
  });

  it("follows the fleet's verbosity, with the children, and goes back", () => {
    const lines: object[] = [];
    const log = { level: "warn", info: (fields: object) => lines.push(fields) };
    const [early, late] = [{ level: "warn" }, { level: "warn" }];
    const levels = new LogLevel(log);
    levels.govern(early);
    levels.follow(1);
    levels.govern(late);
    expect([log.level, early.level, late.level, levels.now]).toEqual(["debug", "debug", "debug", "debug"]);
    levels.follow(1);
    levels.follow(undefined);
    expect([log.level, early.level, late.level, levels.now]).toEqual(["warn", "warn", "warn", "warn"]);
    expect(lines).toEqual([{ logs: "debug" }, { logs: "warn" }]);
  });
});
