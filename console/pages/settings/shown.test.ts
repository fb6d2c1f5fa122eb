import { describe, expect, it } from "vitest";
import { shownSettings } from "./shown.js";

const setting = (name: string, value: string | null, usual: string | null) => ({
  name,
  value,
  default: usual,
  given: value !== usual,
});
const settings = [setting("BATON_A", "1", "1"), setting("BATON_B", "two", "2"), setting("BATON_C", null, null)];
const names = (showsAll: boolean, search = "") => shownSettings(settings, { showsAll, search }).map(({ name }) => name);

describe("shownSettings", () => {
  it("leaves out settings that have their default, unless all are wanted", () => {
    expect(names(false)).toEqual(["BATON_B"]);
    expect(names(true)).toEqual(["BATON_A", "BATON_B", "BATON_C"]);
  });

  it("searches names and values", () => {
    expect(names(true, "baton_c")).toEqual(["BATON_C"]);
    expect(names(false, "TWO")).toEqual(["BATON_B"]);
    expect(names(false, "1")).toEqual([]);
  });
});
