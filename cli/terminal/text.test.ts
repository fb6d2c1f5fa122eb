import { describe, expect, it } from "vitest";
import { harmless, onOneLine, pairs, table } from "./text.js";

describe("a table", () => {
  it("has columns as wide as their widest cell, and no spaces at the end of a line", () => {
    const rows = [
      ["simple", "1", "READY"],
      ["a-longer-name", "10", ""],
    ];
    expect(table(["MODEL", "VERSION", "STATE"], rows)).toEqual([
      "MODEL          VERSION  STATE",
      "simple         1        READY",
      "a-longer-name  10",
    ]);
  });

  it("is its head alone where there are no rows", () => {
    expect(table(["MODEL"], [])).toEqual(["MODEL"]);
  });
});

it("pairs stand in two columns", () => {
  expect(pairs({ id: "7", state: "running" })).toEqual(["id     7", "state  running"]);
  expect(pairs({})).toEqual([]);
});

it("nothing steers the terminal", () => {
  expect(harmless("a\tb\nc\u001b[31m\r\u0007\u009b")).toBe("a\tb\nc\ufffd[31m\ufffd\ufffd\ufffd");
  expect(onOneLine("two\r\nlines\tand \u001b more")).toBe("two lines and \ufffd more");
});
