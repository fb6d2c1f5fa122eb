import { expect, it } from "vitest";
import { timeText } from "./lengths.js";

const NOW = Date.UTC(2026, 10, 29, 12, 0, 0);

it.each([
  [0, "now"],
  [-59_000, "59 s ago"],
  [-60_000, "1 min ago"],
  [-7_200_000, "2 h ago"],
  [-200_000_000, "2 d ago"],
  [20_000, "in 20 s"],
])("a time %d ms from now is '%s'", (ms, text) => {
  expect(timeText(NOW + ms, "relative", NOW)).toBe(text);
});

it("a time in UTC shows its zone", () => expect(timeText(NOW, "UTC", 0)).toBe("2026-11-29 12:00:00 UTC"));
