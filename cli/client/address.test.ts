import { describe, expect, it } from "vitest";
import { readAddress, segment } from "./address.js";

describe("readAddress", () => {
  it.each([
    [{}, {}, "http://127.0.0.1:8000"],
    [{}, { BATON_URL: "" }, "http://127.0.0.1:8000"],
    [{}, { BATON_URL: "https://example.com/" }, "https://example.com"],
    [{ url: "http://localhost:9/a/" }, { BATON_URL: "https://example.com" }, "http://localhost:9/a"],
  ])("of %j in %j is %s", (given, env, url) => {
    expect(readAddress(given, env)).toEqual({ url, headers: {} });
  });

  it("sends the key, of the option before that of the environment", () => {
    const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
    expect(readAddress({}, { BATON_API_KEY: "one" }).headers).toEqual(bearer("one"));
    expect(readAddress({ key: "two" }, { BATON_API_KEY: "one" }).headers).toEqual(bearer("two"));
  });

  it.each(["localhost:8000", "example.com", "", "file:///etc/passwd", "http://a:b@c", "http://a/?b=c", "http://a/#b"])(
    "refuses the address '%s'",
    (url) => expect(() => readAddress({ url }, {})).toThrow(/^--url must be an address/),
  );

  it.each(["ftp://me:secret@host", "me:secret@host:8000", "https://me:sec@ret@ho st"])(
    "never quotes a password, as of '%s'",
    (url) => {
      expect(() => readAddress({ url }, {})).toThrow(/^--url must be an address such as \S+, not '…@ho ?st(:8000)?'$/);
    },
  );

  it.each(["a b", "a\n", "ä"])("refuses a key, and does not quote it", (key) => {
    expect(() => readAddress({}, { BATON_API_KEY: key })).toThrow(
      /^BATON_API_KEY must be printable ASCII without spaces$/,
    );
  });
});

describe("segment", () => {
  it.each([
    ["simple", "simple"],
    ["a/b c", "a%2Fb%20c"],
    ["...", "..."],
    ["?#%", "%3F%23%25"],
  ])("of '%s' is '%s'", (name, written) => expect(segment(name)).toBe(written));

  it.each(["", ".", "..", "\ud800"])("refuses '%s'", (name) => expect(() => segment(name)).toThrow(/name/));
});
