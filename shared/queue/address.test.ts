import { describe, expect, it } from "vitest";
import {
  bucketOf,
  decodeRequestId,
  encodeRequestId,
  parsePin,
  parseRequestName,
  pinOf,
  pinText,
  requestName,
} from "./address.js";
import { decodeEntry } from "./entry.js";

const lane = { bucket: 3, model: "chain", version: "1", digest: "0123456789ab" };

describe("the name of a request", () => {
  it("tells tenant and id again", () => {
    const named = { tenant: "acme", request: "0b1c9a5e-0001" };
    expect(parseRequestName(requestName(named))).toEqual(named);
  });

  it("is read from its entry", () => {
    const facts = "acme:0b1c9a5e-0001|acme:u7|3|1|1700000000000|gw|60000|3|1700000000000-0.boot.0";
    const fields = ["m", facts, "b", "frame"].map((text) => Buffer.from(text));
    expect(decodeEntry(lane, Buffer.from("1700000000001-0"), fields)).toMatchObject({
      lane,
      entry: "1700000000001-0",
      key: "3/1700000000001-0",
      bucket: 3,
      model: "chain",
      tenant: "acme",
      request: "0b1c9a5e-0001",
      sequence: "acme:u7",
    });
  });
});

describe("a pin", () => {
  it("is told again from its text", () => {
    const pin = pinOf({ version: "12", digest: "f".repeat(64) });
    expect(pin.digest).toHaveLength(12);
    expect(parsePin(pinText(pin))).toEqual(pin);
  });
});

describe("the public id of a request", () => {
  it("says where it lies, but not whose it is", () => {
    const address = { bucket: 3, model: "my.model", tenant: "acme", request: "r" };
    const id = encodeRequestId(address);
    expect(id).toBe("r.3.my.model");
    expect(decodeRequestId(id, "acme")).toEqual(address);
  });

  it.each(["r.1024.m", "r.99999.m", "r.m", "r..m", "r.-1.m", "", "r:x.1.m"])("is none: %s", (id) => {
    expect(decodeRequestId(id, "acme")).toBeUndefined();
  });
});

describe("the bucket of a request", () => {
  it("follows from model, tenant and sequence, and spreads them", () => {
    const ids = Array.from({ length: 16_000 }, (_, i) => `u${i}`);
    const counts = Array<number>(16).fill(0);
    for (const id of ids) {
      const bucket = bucketOf("m", "acme", id, 16);
      expect(bucketOf("m", "acme", id, 16)).toBe(bucket);
      counts[bucket] = (counts[bucket] ?? 0) + 1;
    }
    for (const count of counts) expect(Math.abs(count - 1_000)).toBeLessThan(200);
  });
});
