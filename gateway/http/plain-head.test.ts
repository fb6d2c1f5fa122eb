import { describe, expect, it } from "vitest";
import { mayBecomePlain, readPlainHead } from "./plain-head.js";

const first = "POST /v2/models/m/infer HTTP/1.1";
const head = (...fields: string[]): string => [first, "Host: h", ...fields].join("\r\n");
const length = "Content-Length: 12";

describe("a plain head", () => {
  it("has a target, fields and a length", () => {
    const read = readPlainHead(head("User-Agent: curl/8 (x; y)", "ACCEPT: */*", "Connection: Keep-Alive", length));
    expect({ ...read, headers: { ...read?.headers } }).toEqual({
      target: "/v2/models/m/infer",
      headers: {
        host: "h",
        "user-agent": "curl/8 (x; y)",
        accept: "*/*",
        connection: "Keep-Alive",
        "content-length": "12",
      },
      length: 12,
    });
  });

  it.each([
    ["another method", head(length).replace("POST", "GET")],
    ["another version", head(length).replace("1.1", "1.0")],
    ["two spaces", head(length).replace("POST ", "POST  ")],
    ["a query", head(length).replace("/infer", "/infer?x")],
    ["an escape", head(length).replace("/infer", "/%69nfer")],
    ["a whole URL", head(length).replace("/v2", "http://h/v2")],
    ["no Host", head(length).replace("Host: h\r\n", "")],
    ["two Hosts", head(length, "host: h")],
    ["no length", head()],
    ["a length of 0", head("Content-Length: 0")],
    ["a length that begins with 0", head("Content-Length: 012")],
    ["a length with a sign", head("Content-Length: +12")],
    ["two lengths", head(length, length)],
    ["two lengths in one field", head("Content-Length: 12, 12")],
    ["a length of many digits", head("Content-Length: 999999999")],
    ["a transfer encoding", head(length, "Transfer-Encoding: chunked")],
    ["a connection that ends", head(length, "Connection: close")],
    ["options of the connection", head(length, "Connection: keep-alive, te")],
    ["an upgrade", head(length, "Upgrade: h2c")],
    ["an expectation", head(length, "Expect: 100-continue")],
    ["an encoded body", head(length, "Content-Encoding: gzip")],
    ["a page", head(length, "Origin: http://a.example")],
    ["a browser's word on the page", head(length, "Sec-Fetch-Site: same-origin")],
    ["a space before the colon", head("Content-Length : 12")],
    ["no space behind the colon", head(length, "A:b")],
    ["a tab", head(length, "A:\tb")],
    ["two spaces behind the colon", head(length, "A:  b")],
    ["a space at the end", head(length, "A: b ")],
    ["an empty value", head(length, "A: ")],
    ["an empty name", head(length, ": b")],
    ["a name with an underscore", head(length, "Content_Length: 13")],
    ["a line that goes on", head(length, "A: b", " c")],
    ["a lone line feed", head(length, "A: b\nTransfer-Encoding: chunked")],
    ["a lone carriage return", head(length, "A: b\rTransfer-Encoding: chunked")],
    ["NUL", head(length, "A: b\0c")],
    ["a byte above 127", head(length, "A: b\u00e9")],
    ["an empty line", head(length, "")],
  ])("has not %s", (_, text) => {
    expect(readPlainHead(text)).toBeUndefined();
  });

  it("may be what begins plainly, once its first line is whole", () => {
    const whole = head("Accept: */*", length);
    const at = whole.indexOf("\r\n") + 2;
    for (let end = 0; end <= whole.length; end++) {
      expect([end, mayBecomePlain(whole.slice(0, end))]).toEqual([end, end >= at]);
    }
    for (const odd of ["Expect: 100-continue", "A:b", "Host: h"]) {
      const text = `${head(odd)}\r\n`;
      expect([text, mayBecomePlain(text)]).toEqual([text, false]);
    }
  });

  it("may have fields with the names of an object's own members", () => {
    expect(readPlainHead(head(length, "Constructor: a", "ToString: b"))?.headers).toMatchObject({
      constructor: "a",
      tostring: "b",
    });
  });
});
