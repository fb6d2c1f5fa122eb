import { expect, it } from "vitest";
import { shownAt } from "./log-settings.js";

it("the level of the log is shown in Triton's members", () => {
  const common = { log_file: "", log_error: true, log_format: "default" };
  expect(shownAt("error")).toEqual({ ...common, log_info: false, log_warning: false, log_verbose_level: 0 });
  expect(shownAt("warn")).toEqual({ ...common, log_info: false, log_warning: true, log_verbose_level: 0 });
  expect(shownAt("info")).toEqual({ ...common, log_info: true, log_warning: true, log_verbose_level: 0 });
  expect(shownAt("debug")).toEqual({ ...common, log_info: true, log_warning: true, log_verbose_level: 1 });
});
