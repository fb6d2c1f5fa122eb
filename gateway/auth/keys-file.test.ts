import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addToKeysFile, parseKeysFile, readKeysFile } from "./keys-file.js";
import { makeKey } from "./keys.js";
import { usualScopes } from "./owner/scopes.js";

const hash = `hmac-sha256:${"0".repeat(64)}`;
const key = { id: "0123456789ab", tenant: "acme", hash };
const parse = (file: object) => parseKeysFile(JSON.stringify({ version: 1, ...file }));

describe("a file of keys", () => {
  it("has tenants and keys, as the specification shows them", () => {
    const { keys, tenants } = parse({
      tenants: [{ id: "acme", weight: 4, limits: { queued_requests: 9 } }],
      keys: [{ ...key, name: "ci", scopes: ["infer"], models: ["*"], expires_at: "2027-01-01T00:00:00Z", limits: {} }],
    });
    expect(tenants.get("acme")).toMatchObject({
      models: ["*"],
      state: "active",
      weight: 4,
      limits: { queued_requests: 9 },
    });
    expect(keys.get(key.id)).toMatchObject({
      name: "ci",
      scopes: ["infer"],
      expiresAt: Date.parse("2027-01-01T00:00:00Z"),
      revokedAt: null,
    });
  });

  it("may leave out what has a default", () => {
    expect(parse({ keys: [key] }).keys.get(key.id)).toMatchObject({
      scopes: usualScopes,
      models: ["*"],
      expiresAt: null,
    });
    expect(parse({}).keys.size).toBe(0);
  });

  it.each<[string, string]>([
    ["", "no JSON: line 1, column 1"],
    ['{"version": 1,\n,}', "no JSON: line 2, column 1"],
    ["[]", "the file: "],
    ['{"version": 2}', "version: "],
    [JSON.stringify({ version: 1, keys: [key, { ...key, hash: "x" }] }), "keys[1].hash: "],
    [JSON.stringify({ version: 1, keys: [{ ...key, expires_ta: null }] }), "keys[0]: "],
    [JSON.stringify({ version: 1, keys: [{ ...key, expires_at: "tomorrow" }] }), "keys[0].expires_at: "],
    [JSON.stringify({ version: 1, keys: [{ ...key, scopes: ["all"] }] }), "keys[0].scopes[0]: "],
    [JSON.stringify({ version: 1, keys: [{ ...key, models: ["a/b"] }] }), "keys[0].models: "],
    [JSON.stringify({ version: 1, keys: [{ ...key, limits: { burst: 1 } }] }), "keys[0].limits: "],
    [JSON.stringify({ version: 1, tenants: [{ id: "a:b" }] }), "tenants[0].id: "],
    [JSON.stringify({ version: 1, tenants: [{ id: "a", weight: 0 }] }), "tenants[0].weight: "],
    [JSON.stringify({ version: 1, tenants: [{ id: "a", models: ["x"] }] }), "tenants[0]: "],
    [JSON.stringify({ version: 1, keys: [key, key] }), "keys[1].id: '0123456789ab' is there twice"],
  ])("with a fault is refused, with the place: %s", (text, place) => {
    expect(() => parseKeysFile(text)).toThrow(place);
  });

  it("is never quoted where it is no JSON, because it may be any file", () => {
    expect(() => parseKeysFile("top-secret-password")).toThrow(/^no JSON(?:: line 1, column 2)?$/);
  });
});

describe("a file of keys on disk", () => {
  let folder: string;
  beforeAll(() => (folder = mkdtempSync(join(tmpdir(), "keys-file-"))));
  afterAll(() => rmSync(folder, { recursive: true }));
  const terms = { tenant: "acme", name: "ci", scopes: usualScopes, models: ["*"], createdAt: 1_000, expiresAt: 2_000 };
  const made = () => makeKey(terms, Buffer.alloc(32, 7)).record;

  it("gets keys one by one, keeps the rest as it is, and is never half written", () => {
    const path = join(folder, "keys.json");
    const [first, second] = [made(), made()];
    addToKeysFile(path, first);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    chmodSync(path, 0o640);
    addToKeysFile(path, second);
    expect(statSync(path).mode & 0o777).toBe(0o640);
    expect([...readKeysFile(path).keys.values()]).toMatchObject([first, second]);
  });

  it("with a fault gets no key, and stays", () => {
    const path = join(folder, "faulty.json");
    writeFileSync(path, '{"version": 2}');
    expect(() => addToKeysFile(path, made())).toThrow("version: ");
    expect(readFileSync(path, "utf8")).toBe('{"version": 2}');
  });

  it("is not read if it is not there, or if others may write it", () => {
    expect(() => readKeysFile(join(folder, "none"))).toThrow("the file cannot be read: ENOENT");
    const path = join(folder, "open.json");
    addToKeysFile(path, made());
    chmodSync(path, 0o622);
    expect(() => readKeysFile(path)).toThrow("other users may write the file");
  });
});
