import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWTHeaderParameters, type SignOptions } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { InferenceError } from "#shared/errors.js";
import { silentLog } from "../../../test/support/silent.js";
import { tenantRecord, type KnownTenant } from "../owner/records.js";
import { Jwks } from "./jwks.js";
import { Tokens } from "./tokens.js";

const ISSUER = "https://id.example";
const NOW = 1_800_000_000_000;
const folder = mkdtempSync(join(tmpdir(), "baton-tokens-"));
afterAll(() => rmSync(folder, { recursive: true }));
const place = { path: join(folder, "keys.json") };

interface Pair {
  readonly publicKey: CryptoKey;
  readonly privateKey: CryptoKey;
}
let first: Pair;
let second: Pair;
let rsa: Pair;

/** Writes the key set of the issuer. */
async function publish(keys: Readonly<Record<string, Pair>>): Promise<void> {
  const all = Object.entries(keys).map(async ([kid, { publicKey }]) => ({ ...(await exportJWK(publicKey)), kid }));
  writeFileSync(place.path, JSON.stringify({ keys: await Promise.all(all) }));
}

const sign = (
  claims: object = {},
  { privateKey }: Pair = first,
  header: Partial<JWTHeaderParameters> = {},
  options: SignOptions = {},
): Promise<string> =>
  new SignJWT({
    iss: ISSUER,
    aud: ["other", "baton"],
    sub: "somebody",
    exp: NOW / 1_000 + 300,
    tenant: "acme",
    scope: "infer read",
    ...claims,
  })
    .setProtectedHeader({ alg: "EdDSA", kid: "first", ...header })
    .sign(privateKey, options);

/** A judge of tokens whose time and whose tenants the test sets. */
async function judgeWith() {
  const settings = { time: 0, now: NOW, tenants: new Map<string, KnownTenant>(), failures: [] as string[], asked: 0 };
  const world = { now: () => settings.time } as never;
  const jwks = await Jwks.open({ place, onFailure: (why) => settings.failures.push(why), log: silentLog, world });
  const find = (name: string): KnownTenant => settings.tenants.get(name) ?? { record: undefined };
  const tokens = new Tokens({
    log: silentLog,
    terms: {
      jwks: place,
      issuer: ISSUER,
      audience: "baton",
      algorithms: ["RS256", "EdDSA"],
      claims: { tenant: "tenant", scope: "scope", models: "models" },
    },
    jwks: {
      find: (...asked) => {
        settings.asked++;
        return jwks.find(...asked);
      },
    },
    tenants: { version: 0, tenant: find, peekTenant: find },
    now: () => settings.now,
  });
  const judged = async (text: string): Promise<unknown> => {
    try {
      const { tenant, keyId, scopes, models } = await tokens.judge(text);
      return { tenant, keyId, scopes: [...scopes], models };
    } catch (error) {
      if (error instanceof InferenceError) return `${error.code}: ${error.message}`;
      throw error;
    }
  };
  return { settings, tokens, judged };
}

const owner = {
  tenant: "acme",
  keyId: expect.stringMatching(/^jwt:[0-9a-f]{16}$/) as string,
  scopes: ["infer", "read"],
  models: ["*"],
};

beforeAll(async () => {
  first = await generateKeyPair("EdDSA", { extractable: true });
  second = await generateKeyPair("EdDSA", { extractable: true });
  rsa = await generateKeyPair("RS512", { extractable: true });
});

describe("a token", () => {
  it("is refused with 503 before Redis has told its time", async () => {
    await publish({ first });
    const { settings, judged } = await judgeWith();
    settings.now = 0;
    expect(await judged(await sign())).toMatch(/^unavailable: /);
  });

  it("costs no turn of the event loop once it is known", async () => {
    await publish({ first });
    const { tokens } = await judgeWith();
    const text = await sign();
    await tokens.judge(text);
    expect(tokens.judge(text)).toMatchObject({ tenant: "acme" });
  });

  it("says whose a request is, is verified once a minute, and names its subject always alike", async () => {
    await publish({ first });
    const { settings, judged } = await judgeWith();
    const text = await sign();
    expect([await judged(text), await judged(text)]).toEqual([owner, owner]);
    expect(settings.asked).toBe(1);
    settings.now += 60_000;
    expect(await judged(text)).toEqual(owner);
    expect(settings.asked).toBe(2);
    const [one, other] = [await judged(await sign({ jti: "2" })), await judged(await sign({ sub: "other" }))];
    expect((one as { keyId: string }).keyId).not.toBe((other as { keyId: string }).keyId);
    expect(one).toEqual(await judged(text));
  });

  const signature = "invalid_token: the token is not valid: its signature cannot be verified";
  const wrong = (claim: string) => `invalid_token: the token is not valid: its claim '${claim}' is wrong`;
  const missing = (claim: string) => `invalid_token: the token is not valid: its claim '${claim}' is missing`;
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = { iss: ISSUER, aud: "baton", exp: NOW / 1_000 + 300, tenant: "acme", scope: "infer" };

  it.each<[string, () => string | Promise<string>, string]>([
    ["of another key", () => sign({}, second), signature],
    ["of a key that nobody has published", () => sign({}, second, { kid: "second" }), signature],
    ["whose algorithm is not allowed", () => sign({}, rsa, { alg: "RS512" }), signature],
    ["without a signature", () => `${part({ alg: "none" })}.${part(claims)}.`, signature],
    ["with a changed claim", async () => (await sign()).replace(/\.[^.]+\./, `.${part(claims)}.`), signature],
    ["of no form", () => "a.b.c", signature],
    ["with an unknown critical header", () => sign({}, first, { crit: ["x"], x: 1 }, { crit: { x: true } }), signature],
    ["that has expired", () => sign({ exp: NOW / 1_000 - 31 }), "invalid_token: the token has expired"],
    ["without an end", () => sign({ exp: undefined }), missing("exp")],
    ["that begins later", () => sign({ nbf: NOW / 1_000 + 31 }), wrong("nbf")],
    ["of another issuer", () => sign({ iss: `${ISSUER}/` }), wrong("iss")],
    ["for another audience", () => sign({ aud: "other" }), wrong("aud")],
    ["for no audience", () => sign({ aud: undefined }), missing("aud")],
    ["without a subject", () => sign({ sub: undefined }), missing("sub")],
    ["without a tenant", () => sign({ tenant: undefined }), missing("tenant")],
    ["with a tenant that cannot be", () => sign({ tenant: "a:b" }), wrong("tenant")],
    ["of a subject that is no text", () => sign({ sub: 5 }), wrong("sub")],
  ])("is refused: %s", async (_, make, told) => {
    await publish({ first });
    const { judged } = await judgeWith();
    expect(await judged(await make())).toBe(told);
  });

  it("is not taken for a secret's: a signature under the published key as HMAC", async () => {
    await publish({ first });
    const { judged } = await judgeWith();
    const secret = new TextEncoder().encode(JSON.stringify((await exportJWK(first.publicKey)).x).padEnd(64));
    const text = await new SignJWT(claims).setProtectedHeader({ alg: "HS256", kid: "first" }).sign(secret);
    expect(await judged(text)).toBe(signature);
  });

  it("may be half a minute early or late, for the issuer's clock", async () => {
    await publish({ first });
    const { judged } = await judgeWith();
    expect(await judged(await sign({ nbf: NOW / 1_000 + 29, exp: NOW / 1_000 - 29 }))).toEqual(owner);
  });

  it("needs no `kid` if there is a single key", async () => {
    const text = await sign({}, first, { kid: undefined as never });
    await publish({ first });
    expect(await (await judgeWith()).judged(text)).toEqual(owner);
    await publish({ first, rsa });
    expect(await (await judgeWith()).judged(text)).toBe(signature);
  });

  it("is refused once its tenant is suspended, and uses the models that the tenant may use", async () => {
    await publish({ first });
    const { settings, tokens, judged } = await judgeWith();
    const text = await sign({ models: ["tale-*"] });
    settings.tenants.set("acme", { record: tenantRecord.parse({ id: "acme", models: ["*-gpt"] }) });
    const { mayUse } = await tokens.judge(text);
    expect(["tale-gpt", "tale-2", "a-gpt"].map(mayUse)).toEqual([true, false, false]);
    settings.tenants.set("acme", { record: tenantRecord.parse({ id: "acme", state: "suspended" }) });
    expect(await judged(text)).toMatch(/^tenant_suspended: /);
  });

  it("is as good for its streams as its subject's newest token", async () => {
    await publish({ first });
    const { settings, tokens } = await judgeWith();
    const { openAs = "" } = await tokens.judge(await sign());
    await tokens.judge(await sign({ exp: NOW / 1_000 + 600 }));
    await tokens.judge(await sign({ jti: "again" }));
    expect(tokens.peek(openAs)?.key.expiresAt).toBe(NOW + 630_000);
    settings.tenants.set("acme", { record: tenantRecord.parse({ id: "acme", state: "suspended" }) });
    expect((await tokens.readAgain(openAs))?.tenant?.state).toBe("suspended");
    expect(tokens.peek(`${openAs}x`)).toBeUndefined();
  });
});

describe("the keys of an issuer", () => {
  it("are read anew for a key that is new, but not more than twice a minute", async () => {
    await publish({ first });
    const { settings, judged } = await judgeWith();
    const text = await sign({}, second, { kid: "second" });
    settings.time = 29_999;
    await publish({ first, second });
    expect(await judged(text)).toMatch(/^invalid_token/);
    settings.time = 30_000;
    expect(await judged(text)).toEqual(owner);
  });

  it("stay good for an hour while they cannot be read, and no longer", async () => {
    await publish({ first });
    const { settings, judged } = await judgeWith();
    writeFileSync(place.path, "no keys");
    settings.time = 3_599_000;
    expect(await judged(await sign({ jti: "1" }))).toEqual(owner);
    settings.time = 3_640_000;
    expect(await judged(await sign({ jti: "2" }))).toMatch(/^unavailable: /);
    expect(settings.failures.length).toBeGreaterThan(0);
    settings.time = 3_680_000;
    await publish({ first });
    expect(await judged(await sign({ jti: "3" }))).toEqual(owner);
  });

  it("are forgotten after ten minutes if the issuer no longer has them", async () => {
    await publish({ first });
    const { settings, judged } = await judgeWith();
    await publish({ second });
    settings.time = 600_001;
    await judged(await sign({ jti: "1" }));
    await expect.poll(async () => judged(await sign({ jti: randomUUID() }))).toMatch(/^invalid_token/);
  });

  it("in a file that has none stop the start", async () => {
    writeFileSync(place.path, "{}");
    await expect(judgeWith()).rejects.toThrow("BATON_JWT_JWKS names a file without a readable key set");
  });
});
