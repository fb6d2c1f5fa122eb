import { describe, expect, it } from "vitest";
import { digestOf, keyId, newKey } from "./key.js";

const known = "bt_0123456789ab_BatonTestVector0000000000000000x41OopR";

describe("a key", () => {
  it("has its id, its checksum and its digest", () => {
    expect(keyId(known)).toBe("0123456789ab");
    expect(digestOf(known, Buffer.alloc(32, 7)).toString("hex")).toBe(
      "c8d5520d98a28082be3c4fc5dd0cb1397470ca9be569e24bcc81a648620e46b9",
    );
  });

  it("is made anew each time, in its form", () => {
    const keys = Array.from({ length: 1_000 }, newKey);
    for (const { id, text } of keys) {
      expect(text).toMatch(/^bt_[0-9a-z]{12}_[0-9A-Za-z]{38}$/);
      expect(keyId(text)).toBe(id);
    }
    expect(new Set(keys.map(({ text }) => text)).size).toBe(keys.length);
  });

  it.each([
    ["another checksum", known.replace(/R$/, "S")],
    ["another secret", known.replace("Vector0", "Vector1")],
    ["another id", known.replace("0123456789ab", "0123456789ac")],
    ["an upper-case prefix", known.replace("bt_", "BT_")],
    ["a character too few", known.slice(0, -1)],
    ["a character too many", `${known}0`],
    ["a blank before it", ` ${known}`],
    ["a line feed behind it", `${known}\n`],
    ["NUL", known.replace("Vector", "Vect\0r")],
    ["nothing", ""],
  ])("has not %s", (_, text) => {
    expect(keyId(text)).toBeUndefined();
  });
});
