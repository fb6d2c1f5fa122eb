import { describe, expect, it } from "vitest";
import { allows, covers, globsFault } from "./globs.js";

describe("a list of globs", () => {
  it.each<[globs: string[], name: string, allowed: boolean]>([
    [["*"], "anything", true],
    [[], "anything", false],
    [["tale-*"], "tale-gpt", true],
    [["tale-*"], "tale-", true],
    [["tale-*"], "a-tale-gpt", false],
    [["*gpt"], "tale-gpt", true],
    [["*gpt"], "tale-gpt-2", false],
    [["t?le"], "tale", true],
    [["t?le"], "tle", false],
    [["a*b*c"], "a-b-b-c", true],
    [["a*b*c"], "a-c-b", false],
    [["exact"], "exact", true],
    [["exact"], "exactly", false],
    [["*", "!secret-*"], "secret-1", false],
    [["!secret-*", "*"], "secret-1", false],
    [["*", "!secret-*"], "open", true],
    [["!secret-*"], "open", false],
    [["a.b"], "axb", false],
  ])("%j says of '%s': %s", (globs, name, allowed) => {
    expect(allows(globs, name)).toBe(allowed);
  });

  it("is as right as a regular expression, and never slow", () => {
    const names = ["", "a", "b", "ab", "aab", "abab", "bbaa", "a".repeat(128), `${"a".repeat(127)}b`];
    for (const glob of ["*a*a*a*a*b", "?*?", "**", "a*?b", "*?*?*?*b", "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b"]) {
      for (const name of names) {
        const simple = name.length > 8 ? undefined : new RegExp(`^${glob.replaceAll("*", ".*").replaceAll("?", ".")}$`);
        const allowed = allows([glob], name);
        if (simple !== undefined) expect([glob, name, allowed]).toEqual([glob, name, simple.test(name)]);
      }
    }
  });

  it.each<[globs: string[], others: string[], covered: boolean]>([
    [["*"], ["*"], true],
    [["*"], ["tale-*", "?", "a"], true],
    [["*"], [], true],
    [[], ["a"], false],
    [["tale-*"], ["*"], false],
    [["tale-*"], ["tale-?", "tale-a*b", "tale-", "tale-*"], true],
    [["tale-*"], ["tal*"], false],
    [["tale-?"], ["tale-*"], false],
    [["tale-?"], ["tale-?", "tale-x"], true],
    [["a", "b*"], ["a", "bc"], true],
    [["a", "b*"], ["a", "c"], false],
    [["*", "!secret-*"], ["*"], false],
    [["*", "!secret-*"], ["*", "!secret-*"], true],
    [["*", "!secret-*"], ["*", "!s*"], true],
    [["*", "!secret-*"], ["*", "!secret-a"], false],
    [["*", "!secret-*"], ["open"], true],
    [["*", "!secret-*"], ["secret-1"], false],
    [["!a"], ["!a"], true],
  ])("%j covers %j: %s", (globs, others, covered) => {
    expect(covers(globs, others)).toBe(covered);
  });

  it("has a fault if it is long, or a glob is none", () => {
    expect(globsFault(["tale-*", "!a?", "*"])).toBeUndefined();
    expect(globsFault(Array.from({ length: 65 }, () => "*"))).toBe("more than 64 globs");
    expect(globsFault(["a".repeat(129)])).toContain("is no glob");
    expect(globsFault(["a b"])).toBe("'a b' is no glob of a model's name");
    expect(globsFault(["!"])).toBe("'!' is no glob of a model's name");
    expect(globsFault([""])).toBe("'' is no glob of a model's name");
  });
});
