import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { isSecret, newSecret, parseKey, SealedError, SecretBox } from "./secrets.js";

const key = Buffer.alloc(32, 7);

describe("SecretBox", () => {
  it("opens what it has sealed, for its owner alone, and shows nothing of it", () => {
    const box = new SecretBox(key);
    const secret = newSecret();
    const sealed = box.seal(secret, "a:wh_1");
    expect(sealed).not.toContain(secret.slice(6));
    expect(sealed).not.toBe(box.seal(secret, "a:wh_1"));
    expect(box.open(sealed, "a:wh_1")).toBe(secret);
    expect(() => box.open(sealed, "b:wh_1")).toThrow(SealedError);
  });

  it("refuses what was changed, and what another key has sealed", () => {
    const box = new SecretBox(key);
    const sealed = box.seal(newSecret(), "a");
    const at = sealed.length - 10;
    const changed = sealed.slice(0, at) + (sealed[at] === "A" ? "B" : "A") + sealed.slice(at + 1);
    expect(() => box.open(changed, "a")).toThrow(SealedError);
    expect(() => box.open("sealed:", "a")).toThrow(SealedError);
    expect(() => box.open("whatever", "a")).toThrow(SealedError);
    expect(() => new SecretBox(randomBytes(32)).open(sealed, "a")).toThrow(/BATON_SECRETS_KEY/);
    expect(() => new SecretBox(undefined).open(sealed, "a")).toThrow(/BATON_SECRETS_KEY/);
  });

  it("goes on with secrets from before there was a key", () => {
    const secret = newSecret();
    expect(new SecretBox(key).open(new SecretBox(undefined).seal(secret, "a"), "a")).toBe(secret);
  });
});

describe("isSecret", () => {
  it("takes 24 to 64 bytes in base64 behind whsec_", () => {
    const made = (bytes: number) => `whsec_${randomBytes(bytes).toString("base64")}`;
    expect([23, 24, 64, 65].map((bytes) => isSecret(made(bytes)))).toEqual([false, true, true, false]);
    expect(isSecret(newSecret())).toBe(true);
    for (const text of ["", "whsec_", newSecret().slice(6), `${made(24)} `, `whsec_${"!".repeat(40)}`]) {
      expect(isSecret(text)).toBe(false);
    }
  });
});

describe("parseKey", () => {
  it("takes 32 bytes in base64 or hex", () => {
    expect(parseKey(key.toString("base64"))).toEqual(key);
    expect(parseKey(key.toString("hex"))).toEqual(key);
    for (const text of ["", "abc", key.subarray(1).toString("hex"), `${key.toString("base64")}x`]) {
      expect(parseKey(text)).toBeUndefined();
    }
  });
});
