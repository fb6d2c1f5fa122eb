import { describe, expect, it } from "vitest";
import { JsonError } from "./error.js";
import { rootMembers } from "./root-members.js";

const split = (text: string) => [...rootMembers(Buffer.from(text))].map(([name, value]) => [name, value.toString()]);

describe("the members of a document's root", () => {
  it("are the bytes that they were written in", () => {
    expect(split(' { "a" : [1, {"b": "]}"}] ,"c":-1.50e3,"d" : "\\"" , "e":null,"f":{ } } ')).toEqual([
      ["a", '[1, {"b": "]}"}]'],
      ["c", "-1.50e3"],
      ["d", '"\\""'],
      ["e", "null"],
      ["f", "{ }"],
    ]);
    expect(split("{}")).toEqual([]);
    expect(split('{"a":18446744073709551615}')).toEqual([["a", "18446744073709551615"]]);
  });

  it.each([
    "",
    "[]",
    "1",
    "{",
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{"a":1,"a":2}',
    '{"a":1} 2',
    '{"a":[1',
    '{"a":x}',
    "{a:1}",
  ])("cannot be told apart in %s", (text) => {
    expect(() => split(text)).toThrow(JsonError);
  });

  it("are refused where they are too many, or no UTF-8", () => {
    const many = Array.from({ length: 101 }, (_, i) => `"m${i}":1`).join(",");
    expect(() => split(`{${many}}`)).toThrow(/More object members/);
    expect(() => rootMembers(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))).toThrow(/UTF-8/);
  });
});
