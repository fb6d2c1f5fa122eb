import { describe, expect, it } from "vitest";
import { uniform } from "../sampling/random.js";
import { StopStrings } from "./stop.js";

/**
 * @returns the text of each push, then the text held at the end; `!` marks the push that stopped
 */
function said(stops: readonly string[], pushes: readonly string[]): string[] {
  const strings = new StopStrings(stops);
  const parts = pushes.map((push) => {
    const { text, stopped } = strings.push(push);
    return stopped ? `${text}!` : text;
  });
  return [...parts, strings.flush()];
}

describe("StopStrings", () => {
  it.each<[what: string, stops: string[], pushes: string[], said: string[]]>([
    ["gives everything at once without stop strings", [], ["ab", "c"], ["ab", "c", ""]],
    ["ignores an empty stop string", [""], ["ab"], ["ab", ""]],
    ["gives at once what begins no stop string", ["xyz"], ["ab", "c"], ["ab", "c", ""]],
    ["cuts before the stop string", ["xyz"], ["abxyzc"], ["ab!", ""]],
    ["holds back what may begin one", ["xyz"], ["abx", "y", "c"], ["ab", "", "xyc", ""]],
    ["holds back no more than that", ["xyz"], ["xx", "xyx"], ["x", "xxy", "x"]],
    ["gives what it held back at the end", ["xyz"], ["abxy"], ["ab", "xy"]],
    ["finds one that comes in pieces", ["xyz"], ["ax", "y", "zb"], ["a", "", "!", ""]],
    ["finds one that begins within its own beginning", ["aab"], ["a", "a", "a", "b"], ["", "", "a", "!", ""]],
    ["gives nothing after the stop", ["x"], ["ax", "b", "x"], ["a!", "!", "!", ""]],
    ["cuts at the one that begins first", ["bcd", "ab"], ["xabcd"], ["x!", ""]],
    ["cuts at the one that begins first even if it ends last", ["b", "abc"], ["xabc"], ["x!", ""]],
    ["stops with the push that completes any", ["b", "abc"], ["xab", "c"], ["xa!", "!", ""]],
    ["cuts at the first of several occurrences", ["x"], ["1x2x3"], ["1!", ""]],
    ["can be one that ends another", ["abc", "c"], ["ab", "c"], ["", "!", ""]],
    ["finds one of a single character", ["\n"], ["a", "\n"], ["a", "!", ""]],
    ["finds an emoji, and none that only resembles it", ["😀"], ["😁", "a😀"], ["😁", "a!", ""]],
  ])("%s", (_what, stops, pushes, expected) => {
    expect(said(stops, pushes)).toEqual(expected);
  });

  it("takes for text what is completed while it is not honoured, and sees what only begins then", () => {
    const strings = new StopStrings(["ab"]);
    expect(strings.push("abca", false)).toEqual({ text: "abc", stopped: false });
    expect(strings.push("b")).toEqual({ text: "", stopped: true });
  });

  it("goes on within a stop string that was not honoured", () => {
    const strings = new StopStrings(["aba"]);
    expect(strings.push("aba", false)).toEqual({ text: "ab", stopped: false });
    expect(strings.push("ba")).toEqual({ text: "", stopped: true });
  });

  it("gives the text up to the first stop string however the text is cut, and holds only what could begin one", () => {
    for (let round = 0; round < 3000; round++) {
      const at = (draw: number): number => uniform(2, round, draw);
      const word = (from: number, length: number): string =>
        Array.from({ length }, (_, i) => "aab"[Math.floor(at(from + i) * 3)]).join("");
      const stops = Array.from({ length: 1 + Math.floor(at(0) * 3) }, (_, i) =>
        word(100 + i * 10, 2 + Math.floor(at(i + 1) * 5)),
      );
      const text = word(200, 40);
      const strings = new StopStrings(stops);
      let given = "";
      let seen = "";
      for (let i = 0; i < text.length && !strings.stopped;) {
        const length = 1 + Math.floor(at(300 + i) * 4);
        const piece = text.slice(i, i + length);
        seen += piece;
        i += length;
        given += strings.push(piece).text;
        const starts = stops.map((stop) => seen.indexOf(stop)).filter((start) => start >= 0);
        const tails = stops.flatMap((stop) => Array.from(stop, (_, n) => stop.slice(0, n)));
        const held = Math.max(...tails.filter((tail) => seen.endsWith(tail)).map((tail) => tail.length));
        const expected = starts.length > 0 ? seen.slice(0, Math.min(...starts)) : seen.slice(0, seen.length - held);
        expect(given, JSON.stringify({ stops, seen })).toBe(expected);
        expect(strings.stopped).toBe(starts.length > 0);
      }
      if (!strings.stopped) expect(given + strings.flush()).toBe(text);
    }
  });

  it("takes a megabyte that nearly stops everywhere, in one piece and in many", () => {
    const stop = `${"a".repeat(1000)}b`;
    const text = "a".repeat(1_000_000);
    const whole = new StopStrings([stop, `a${stop}`, "ac"]);
    expect(whole.push(text).text.length).toBe(1_000_000 - 1001);
    expect(whole.flush().length).toBe(1001);
    const pieces = new StopStrings([stop]);
    let length = 0;
    for (let i = 0; i < 250_000; i++) length += pieces.push("aaaa").text.length;
    expect(length).toBe(1_000_000 - 1000);
    expect(pieces.push("b")).toEqual({ text: "", stopped: true });
  });
});
