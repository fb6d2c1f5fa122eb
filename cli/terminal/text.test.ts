import { describe, expect, it } from "vitest";
import { harmless, harmlessJson, onOneLine, pairs, table } from "./text.js";

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
  expect(onOneLine("a\u202eb\u2066c")).toBe("a\ufffdb\ufffdc");
  expect(onOneLine("two\r\nlines\tand \u001b more")).toBe("two lines and \ufffd more");
});

it("nothing in a JSON document steers the terminal, and it means the same", () => {
  const json = '{"text":"a\u009b31m\u007f \\u001b"}\n';
  expect(harmlessJson(json)).toBe('{"text":"a\\u009b31m\\u007f \\u001b"}\n');
  expect(JSON.parse(harmlessJson(json))).toEqual(JSON.parse(json));
});
