import { describe, expect, it } from "vitest";
import { parseRanges } from "../webhooks/addresses.js";
import { Peers } from "./peers.js";

const peers = new Peers(parseRanges("10.0.0.0/8,fd00::/8,192.0.2.7"));
const addressOf = (remoteAddress: string, forwarded?: string, by = peers) =>
  by.addressOf({ socket: { remoteAddress }, headers: forwarded === undefined ? {} : { "x-forwarded-for": forwarded } });

describe("a peer", () => {
  it.each([
    ["10.1.2.3", true],
    ["::ffff:10.1.2.3", true],
    ["fd00::1", true],
    ["192.0.2.7", true],
    ["192.0.2.8", false],
    ["::1", false],
    ["", false],
    [undefined, false],
  ])("%s is trusted: %s", (address, isTrusted) => {
    expect(peers.isTrusted(address)).toBe(isTrusted);
  });

  it("names nobody else if it is not trusted", () => {
    expect(addressOf("203.0.113.1", "198.51.100.1")).toBe("203.0.113.1");
    expect(addressOf("::ffff:10.0.0.1", "198.51.100.1", new Peers())).toBe("10.0.0.1");
  });

  it.each([
    ["198.51.100.1", "198.51.100.1"],
    ["1.1.1.1, 198.51.100.1", "198.51.100.1"],
    ["1.1.1.1, 198.51.100.1, 10.0.0.2, fd00::2", "198.51.100.1"],
    ["10.0.0.3, 10.0.0.2", "10.0.0.3"],
    ["1.1.1.1, unknown", "10.0.0.1"],
    ["", "10.0.0.1"],
    [undefined, "10.0.0.1"],
    [Array.from({ length: 100 }, (_, i) => `10.9.0.${i}`).join(), "10.9.0.68"],
  ])("that is trusted names the client behind it: %s", (forwarded, client) => {
    expect(addressOf("10.0.0.1", forwarded)).toBe(client);
  });
});
