import { describe, expect, it } from "vitest";
import { mayConnect, parseRanges, urlFault } from "./addresses.js";

const none = parseRanges("") ?? [];
const loopback = parseRanges("127.0.0.0/8, ::1") ?? [];

describe("urlFault", () => {
  it.each([
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://017700000001/",
    "https://①②⑦.0.0.1/",
    "https://127.0.0.1./",
    "https://[::1]/",
    "https://[::]/",
    "https://[::ffff:7f00:1]/",
    "https://[::ffff:10.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[64:ff9b:1::a00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[2001:0:7f00:1::]/",
    "https://[::7f00:1]/",
    "https://[fe80::1]/",
    "https://[fec0::1]/",
    "https://[fd00::1]/",
    "https://[ff02::1]/",
    "https://localhost/",
    "https://localhost./",
    "https://LOCALHOST:9000/",
    "https://a.localhost/",
    "https://0.0.0.0/",
    "https://10.1.2.3/",
    "https://100.64.0.1/",
    "https://169.254.169.254/latest/meta-data",
    "https://172.16.0.1/",
    "https://192.168.1.1/",
    "https://198.18.0.1/",
    "https://224.0.0.1/",
    "https://255.255.255.255/",
    "https://user@example.com/",
    "https://user:secret@example.com/",
    "https://example.com:22/",
    "https://example.com:6379/",
    "https://example.com:4222/",
    "https://example.com/#part",
    "http://example.com/",
    "http://93.184.215.14/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "redis://example.com",
    "example.com",
    "//example.com",
    "",
    `https://example.com/${"a".repeat(2_048)}`,
  ])("refuses %s (A61)", (url) => {
    expect(urlFault(url, none)).toBeTypeOf("string");
  });

  it.each([
    "https://example.com/hook?a=1",
    "https://example.com:8443/",
    "https://93.184.215.14/",
    "https://[2606:2800:21f::1]/",
  ])("takes %s", (url) => {
    expect(urlFault(url, none)).toBeUndefined();
  });

  it("takes what the operator allows, without encryption, too, and on no other port", () => {
    for (const url of ["http://127.0.0.1:9000/", "http://127.1/", "http://localhost:9000/", "https://[::1]/"]) {
      expect(urlFault(url, loopback)).toBeUndefined();
    }
    for (const url of ["http://127.0.0.1:6379/", "http://10.0.0.1/", "http://93.184.215.14/"]) {
      expect(urlFault(url, loopback)).toBeTypeOf("string");
    }
  });
});

describe("mayConnect", () => {
  it("judges an IPv4 address within an IPv6 one as itself", () => {
    expect(mayConnect("::ffff:127.0.0.1", "http", loopback)).toBe(true);
    expect(mayConnect("::ffff:127.0.0.1", "https", none)).toBe(false);
    expect(mayConnect("::ffff:93.184.215.14", "https", none)).toBe(true);
  });

  it("refuses what is no address", () => {
    expect(mayConnect("", "https", none)).toBe(false);
    expect(mayConnect("example.com", "https", none)).toBe(false);
  });
});

describe("parseRanges", () => {
  it("refuses what is no list of ranges", () => {
    for (const text of ["10.0.0.0/33", "10/8", "localhost", "10.0.0.0/8;fd00::/8"])
      expect(parseRanges(text)).toBeUndefined();
  });
});
