import { describe, expect, it } from "vitest";
import { Caller } from "../caller.js";
import { levelFor, ProcessLog, shownAt } from "./process-log.js";

describe("the level of the log", () => {
  it.each([
    [1, "info", "debug"],
    [4, "error", "debug"],
    [0, "info", "info"],
    [0, "warn", "warn"],
    [0, "debug", "info"],
    [null, "debug", "debug"],
    [null, "warn", "warn"],
  ])("for the verbose level %s, with the setting %s, is %s", (verbose, usual, level) => {
    expect(levelFor(verbose, usual)).toBe(level);
  });

  it("is shown in Triton's members", () => {
    const common = { log_file: "", log_error: true, log_format: "default" };
    expect(shownAt("error")).toEqual({ ...common, log_info: false, log_warning: false, log_verbose_level: 0 });
    expect(shownAt("warn")).toEqual({ ...common, log_info: false, log_warning: true, log_verbose_level: 0 });
    expect(shownAt("info")).toEqual({ ...common, log_info: true, log_warning: true, log_verbose_level: 0 });
    expect(shownAt("debug")).toEqual({ ...common, log_info: true, log_warning: true, log_verbose_level: 1 });
  });

  it("is changed for good, and back", () => {
    const log = { level: "warn" };
    const service = new ProcessLog({ log, hasTenantHeader: false });
    expect(service.change(Caller.nobody, { log_verbose_level: 2 })).toMatchObject({ log_verbose_level: 1 });
    expect(log.level).toBe("debug");
    service.change(Caller.nobody, { log_verbose_level: null });
    expect(log.level).toBe("warn");
  });

  it("is all that a client can change, and the client hears which member it cannot", () => {
    const service = new ProcessLog({ log: { level: "info" }, hasTenantHeader: false });
    const shown = service.show();
    expect(service.change(Caller.nobody, shown)).toEqual(shown);
    for (const member of [{ log_file: "a" }, { log_info: false }, { log_warning: false }, { log_format: "ISO8601" }]) {
      const [name] = Object.keys(member);
      expect(() => service.change(Caller.nobody, { log_verbose_level: 1, ...member })).toThrow(`'${name}' cannot`);
    }
    expect(service.show()).toEqual(shown);
  });
});
