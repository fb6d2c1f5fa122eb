import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { listenerSettings } from "#shared/listening/settings.js";
import { authSettings, authTerms } from "./settings.js";

const schema = z.object({
  ...listenerSettings,
  ...authSettings,
  BATON_HOST: z.string(),
  BATON_TENANT_HEADER: z.string().default(""),
  BATON_TRUSTED_PROXIES: z.string().default(""),
  BATON_DEFAULT_LIMITS: z.string().default("{}"),
});
const terms = (env: Record<string, string>) => authTerms(schema.parse({ BATON_HOST: "127.0.0.1", ...env }));

let folder: string;
const pepper = Buffer.alloc(32, 1);
const former = Buffer.alloc(32, 2);
const file = (text: string): string => {
  const path = join(folder, "pepper");
  writeFileSync(path, text);
  return path;
};
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), "auth-"))));
afterAll(() => rmSync(folder, { recursive: true }));

describe("a gateway without keys", () => {
  it.each<[string, Record<string, string>]>([
    ["on loopback", {}],
    ["on localhost", { BATON_HOST: "localhost" }],
    ["on another loopback address", { BATON_HOST: "127.9.9.9" }],
    ["on IPv6's", { BATON_HOST: "::1" }],
    ["published on loopback", { BATON_HOST: "0.0.0.0", BATON_PUBLISH: "127.0.0.1" }],
    ["published on IPv6's loopback, as Compose needs it", { BATON_HOST: "0.0.0.0", BATON_PUBLISH: "[::1]" }],
    ["if its operator accepts the risk", { BATON_HOST: "0.0.0.0", BATON_AUTH: "off", BATON_INSECURE: "1" }],
  ])("starts %s", (_, env) => {
    expect(terms(env)).toEqual({ kind: "off" });
  });

  it.each<[string, Record<string, string>, string]>([
    ["by BATON_HOST", { BATON_HOST: "0.0.0.0" }, "BATON_AUTH is not set and BATON_HOST is 0.0.0.0: anybody who"],
    [
      "by BATON_PUBLISH",
      { BATON_PUBLISH: "0.0.0.0" },
      "BATON_AUTH is not set and BATON_PUBLISH is 0.0.0.0: anybody who",
    ],
    [
      "with `off` alone",
      { BATON_HOST: "10.0.0.1", BATON_AUTH: "off" },
      "BATON_AUTH is off and BATON_HOST is 10.0.0.1: anybody who",
    ],
    [
      "with the risk alone",
      { BATON_HOST: "::", BATON_INSECURE: "1" },
      "BATON_AUTH is not set and BATON_HOST is ::: anybody who",
    ],
    ["by BATON_PUBLISH in brackets", { BATON_PUBLISH: "[::]" }, "BATON_PUBLISH is [::]: anybody who"],
    ["by a name that only looks like loopback", { BATON_HOST: "127.0.0.1.evil.example" }, "anybody who"],
  ])("does not start where others reach it %s", (_, env, text) => {
    expect(() => terms(env)).toThrow(text);
  });
});

describe("the tenants of a proxy", () => {
  const exposed = { BATON_HOST: "0.0.0.0", BATON_AUTH: "off", BATON_INSECURE: "1", BATON_TENANT_HEADER: "x-tenant" };

  it("need a list of proxies where other machines reach the gateway", () => {
    expect(() => terms(exposed)).toThrow("BATON_TENANT_HEADER needs BATON_TRUSTED_PROXIES");
    expect(terms({ ...exposed, BATON_TRUSTED_PROXIES: "10.0.0.1" })).toEqual({ kind: "off" });
    expect(terms({ BATON_TENANT_HEADER: "x-tenant" })).toEqual({ kind: "off" });
    expect(terms({ ...exposed, BATON_PUBLISH: "127.0.0.1" })).toEqual({ kind: "off" });
  });
});

describe("a gateway with keys", () => {
  it("reads the pepper, and the former one", () => {
    const one = file(`${pepper.toString("base64")}\n`);
    expect(terms({ BATON_AUTH: "keys", BATON_HOST: "0.0.0.0", BATON_AUTH_SECRET_FILE: one })).toEqual({
      kind: "asks",
      peppers: [pepper],
      usualLimits: {},
      open: new Set(["health"]),
      keys: { file: undefined },
      tokens: undefined,
    });
    const both = file(`${pepper.toString("base64")}\n${former.toString("base64")}\n`);
    expect(terms({ BATON_AUTH: "keys", BATON_AUTH_SECRET_FILE: both, BATON_AUTH_OPEN: "none" })).toEqual({
      kind: "asks",
      peppers: [pepper, former],
      usualLimits: {},
      open: new Set(),
      keys: { file: undefined },
      tokens: undefined,
    });
  });

  it("does not start with an empty file", () => {
    const env = { BATON_AUTH: "keys", BATON_AUTH_SECRET_FILE: file("") };
    expect(() => terms(env)).toThrow("BATON_AUTH_SECRET_FILE names an empty file");
  });

  it.each(["short", Buffer.alloc(31).toString("base64"), "x\n".repeat(3)])(
    "does not start with the pepper %j",
    (text) => {
      expect(() => terms({ BATON_AUTH: "keys", BATON_AUTH_SECRET_FILE: file(text) })).toThrow(
        "must have 32 bytes in base64",
      );
    },
  );

  it("does not start without a pepper, with a file that is not there, or with a proxy's tenants", () => {
    expect(() => terms({ BATON_AUTH: "keys" })).toThrow("BATON_AUTH=keys needs BATON_AUTH_SECRET_FILE");
    const missing = { BATON_AUTH: "keys", BATON_AUTH_SECRET_FILE: join(folder, "missing") };
    expect(() => terms(missing)).toThrow("BATON_AUTH_SECRET_FILE cannot be read: ENOENT.");
    expect(() => terms({ ...missing, BATON_TENANT_HEADER: "x-tenant" })).toThrow("both say whose a request is");
  });

  it("has its keys in Redis, in a file or in both, and no contradiction", () => {
    const keyed = { BATON_AUTH: "keys", BATON_AUTH_SECRET_FILE: file(`${pepper.toString("base64")}\n`) };
    const BATON_KEYS_FILE = "/keys.json";
    expect(terms({ ...keyed, BATON_KEYS_FILE })).toMatchObject({
      keys: { file: { path: "/keys.json", isAlone: false } },
    });
    const alone = { ...keyed, BATON_KEYS_FILE, BATON_KEYS_STORE: "file" };
    expect(terms(alone)).toMatchObject({ keys: { file: { path: "/keys.json", isAlone: true } } });
    expect(() => terms({ ...keyed, BATON_KEYS_STORE: "both" })).toThrow("BATON_KEYS_STORE=both needs BATON_KEYS_FILE");
    expect(() => terms({ ...alone, BATON_KEYS_STORE: "redis" })).toThrow("BATON_KEYS_STORE is redis");
  });

  it("has paths that need no key, and no others", () => {
    expect(schema.parse({ BATON_HOST: "h", BATON_AUTH_OPEN: "health, metadata" }).BATON_AUTH_OPEN).toBe(
      "health, metadata",
    );
    expect(() => schema.parse({ BATON_HOST: "h", BATON_AUTH_OPEN: "all" })).toThrow("must be `none`");
  });
});

describe("the usual limits of tenants", () => {
  const keyed = (BATON_DEFAULT_LIMITS: string) =>
    terms({ BATON_AUTH: "keys", BATON_AUTH_SECRET_FILE: file(`${pepper.toString("base64")}\n`), BATON_DEFAULT_LIMITS });

  it("are those of the setting", () => {
    expect(keyed('{"requests_per_second": 0.5, "burst": 3}')).toMatchObject({
      usualLimits: { requests_per_second: 0.5, burst: 3 },
    });
  });

  it("need a gateway that asks who its clients are", () => {
    expect(() => terms({ BATON_DEFAULT_LIMITS: '{"burst": 3}' })).toThrow("BATON_DEFAULT_LIMITS needs BATON_AUTH");
  });
});

describe("a gateway with tokens", () => {
  const tokens = {
    BATON_AUTH: "jwt",
    BATON_JWT_JWKS: "https://id.example/keys",
    BATON_JWT_ISSUER: "https://id.example",
    BATON_JWT_AUDIENCE: "baton",
  };

  it("needs no pepper, and has keys beside the tokens if the operator says so", () => {
    expect(terms(tokens)).toEqual({
      kind: "asks",
      usualLimits: {},
      peppers: [],
      open: new Set(["health"]),
      keys: undefined,
      tokens: {
        jwks: { url: new URL("https://id.example/keys") },
        issuer: "https://id.example",
        audience: "baton",
        algorithms: ["RS256", "ES256", "EdDSA"],
        claims: { tenant: "tenant", scope: "scope", models: "models" },
      },
    });
    const BATON_AUTH_SECRET_FILE = file(`${pepper.toString("base64")}\n`);
    const both = terms({ ...tokens, BATON_AUTH: "jwt, keys", BATON_AUTH_SECRET_FILE });
    expect(both).toMatchObject({ peppers: [pepper], keys: {}, tokens: { audience: "baton" } });
    expect(() => terms({ ...tokens, BATON_AUTH: "keys,jwt" })).toThrow("BATON_AUTH=keys needs");
  });

  it.each([
    ["http://127.0.0.1:8080/keys", { url: new URL("http://127.0.0.1:8080/keys") }],
    ["http://[::1]/keys", { url: new URL("http://[::1]/keys") }],
    ["/etc/keys.json", { path: "/etc/keys.json" }],
  ])("reads its keys from %s", (BATON_JWT_JWKS, jwks) => {
    expect(terms({ ...tokens, BATON_JWT_JWKS })).toMatchObject({ tokens: { jwks } });
  });

  it.each(["http://id.example/keys", "ftp://127.0.0.1/keys", "https://", "http://127.0.0.1.evil.example/keys"])(
    "does not start with keys from %s",
    (BATON_JWT_JWKS) => {
      expect(() => terms({ ...tokens, BATON_JWT_JWKS })).toThrow("BATON_JWT_JWKS must be an https: URL");
    },
  );

  it("does not start with a password in the address of its keys", () => {
    const BATON_JWT_JWKS = "https://user:secret@id.example/keys";
    expect(() => terms({ ...tokens, BATON_JWT_JWKS })).toThrow("must not contain a user name or a password");
  });

  it("does not start without the keys, the issuer and the audience, or with a proxy's tenants", () => {
    for (const name of ["BATON_JWT_JWKS", "BATON_JWT_ISSUER", "BATON_JWT_AUDIENCE"]) {
      const { [name]: _, ...others } = tokens as Record<string, string>;
      expect(() => terms(others)).toThrow(`BATON_AUTH=jwt needs ${name}.`);
    }
    expect(() => terms({ ...tokens, BATON_TENANT_HEADER: "x-tenant" })).toThrow("BATON_AUTH=jwt both say whose");
  });

  it.each(["off,jwt", "jwt,jwt", "keys,", "basic", "jwt keys"])("knows no way in %j", (BATON_AUTH) => {
    expect(() => terms({ ...tokens, BATON_AUTH })).toThrow("must be `off`, `keys`, `jwt` or `keys,jwt`");
  });

  it.each(["none", "HS256", "RS256,HS512", ""])("takes no signature by %j", (BATON_JWT_ALGORITHMS) => {
    expect(() => terms({ ...tokens, BATON_JWT_ALGORITHMS })).toThrow("must be of RS256");
  });
});
