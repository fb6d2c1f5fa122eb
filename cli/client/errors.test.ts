import { describe, expect, it } from "vitest";
import { refusal, refusalInStream, unreached } from "./errors.js";
import { mayRepeat, pauseMs } from "./persist.js";

describe("a refusal", () => {
  it.each([
    [400, '{"error":"bad","code":"invalid_argument"}', 4, "bad (invalid_argument)"],
    [404, '{"error":{"message":"no model","code":"model_not_found"}}', 3, "no model (model_not_found)"],
    [410, '{"error":"gone"}', 4, "gone"],
    [429, "{}", 4, "the answer had status 429"],
    [500, '{"error":{"message":null}}', 5, "the answer had status 500"],
    [502, "<html>", 5, "the answer had status 502"],
    [503, '"text"', 5, "the answer had status 503"],
  ])("of status %d with %s exits with %d", (status, body, exit, message) => {
    expect(refusal(status, body)).toMatchObject({ exit, message, status });
  });

  it("in a stream has the status of its code", () => {
    const data = '{"error":"not kept","code":"resume_window_passed"}';
    expect(refusalInStream(data)).toMatchObject({ status: 410, exit: 4 });
    expect(refusalInStream('{"error":"?","code":"of_tomorrow"}')).toMatchObject({ status: 500, exit: 5 });
  });
});

const failed = (code: string, message = "read") =>
  new TypeError("fetch failed", { cause: Object.assign(new Error(message), { code }) });

describe("no answer", () => {
  it("says why there is no connection", () => {
    const error = unreached(failed("ECONNREFUSED"), "http://a");
    expect(error).toMatchObject({ exit: 5, begun: false, message: expect.stringContaining("nothing listens there") });
    const cause = new AggregateError([Object.assign(new Error("x"), { code: "ECONNREFUSED" })]);
    expect(unreached(new TypeError("fetch failed", { cause }), "http://a").begun).toBe(false);
    const badPort = new TypeError("fetch failed", { cause: new Error("bad port") });
    expect(unreached(badPort, "http://a:1")).toMatchObject({ exit: 5, begun: false });
    for (const code of ["SELF_SIGNED_CERT_IN_CHAIN", "ERR_TLS_CERT_ALTNAME_INVALID"])
      expect(unreached(failed(code), "https://a").message).toContain("certificate is not trusted");
    // A server that speaks plain HTTP.
    const plain = unreached(failed("ERR_SSL_WRONG_VERSION_NUMBER"), "https://a");
    expect(plain).toMatchObject({ begun: false, message: expect.stringContaining("does it speak https?") });
  });

  it("may be a connection that broke", () => {
    const error = unreached(failed("ECONNRESET"), "http://a");
    expect(error).toMatchObject({ exit: 5, begun: true, message: "the connection to http://a broke: read" });
  });
});

describe("what is repeated", () => {
  const refused = unreached(failed("ECONNREFUSED"), "http://a");
  const broken = unreached(failed("ECONNRESET"), "http://a");
  it.each([
    ["a gateway that was never there", refused, false, false],
    ["one that was there", refused, true, true],
    ["a connection that broke", broken, false, true],
    ["a proxy without a gateway, at first", refusal(502, ""), false, false],
    ["a proxy without a gateway, later", refusal(502, ""), true, true],
    ["a refusal", refusal(400, ""), true, false],
    ["a failure", refusal(500, ""), true, false],
    ["a mistake of this program", new TypeError("x is undefined"), true, false],
  ])("%s", (_, error, known, repeated) => expect(mayRepeat(error, known)).toBe(repeated));

  it("is repeated after pauses that grow, but not for ever", () => {
    expect([0, 1, 2, 10, 1_000].map(pauseMs)).toEqual([100, 200, 400, 2_000, 2_000]);
  });
});
