import { describe, expect, it } from "vitest";
import { InferenceError } from "#shared/errors.js";
import { Authenticator } from "./authenticator.js";
import { digestOf, newKey, type NewKey } from "./key.js";
import type { KnownKey } from "./owner/records.js";
import { hashText, keyRecord, tenantRecord } from "./owner/records.js";
import { Tickets, type Ticket } from "./tickets.js";

const pepper = Buffer.alloc(32, 7);
const former = Buffer.alloc(32, 8);
const NOW = 1_000_000;

function known({ id, text }: NewKey, more: object = {}, tenant?: object, under = pepper): KnownKey {
  const hash = hashText(digestOf(text, under));
  return {
    key: keyRecord.parse({ id, tenant: "acme", hash, scopes: ["infer", "read"], ...more }),
    tenant: tenant && tenantRecord.parse({ id: "acme", ...tenant }),
  };
}

function authenticator(...keys: KnownKey[]): Authenticator {
  const byId = new Map(keys.map((one) => [one.key.id, one]));
  return new Authenticator({
    keys: { find: (id) => byId.get(id), peek: (id) => byId.get(id) },
    peppers: [pepper, former],
    now: () => NOW,
  });
}

const asked = (text: string) => ({ authorization: [`Bearer ${text}`], apiKey: [], target: "/v2" });

async function judged(judge: Authenticator, text: string): Promise<unknown> {
  try {
    const { tenant, keyId, scopes } = await judge.judge(asked(text));
    return { tenant, keyId, scopes: [...scopes] };
  } catch (error) {
    if (error instanceof InferenceError) return error.code;
    throw error;
  }
}

describe("a key", () => {
  const key = newKey();
  const owner = { tenant: "acme", keyId: key.id, scopes: ["infer", "read"] };

  it("says whose a request is, the first time and later", async () => {
    const judge = authenticator(known(key));
    expect([await judged(judge, key.text), await judged(judge, key.text)]).toEqual([owner, owner]);
  });

  it("is good under the former pepper", async () => {
    expect(await judged(authenticator(known(key, {}, undefined, former)), key.text)).toEqual(owner);
    expect(await judged(authenticator(known(key, {}, undefined, Buffer.alloc(32, 9))), key.text)).toBe(
      "invalid_api_key",
    );
  });

  it("is good if Redis has to be asked", async () => {
    const judge = new Authenticator({
      keys: { find: () => Promise.resolve(known(key)), peek: () => undefined },
      peppers: [pepper],
      now: () => NOW,
    });
    expect(await judged(judge, key.text)).toEqual(owner);
  });

  it.each<[string, object, object | undefined, string]>([
    ["revoked", { revokedAt: 5 }, undefined, "revoked_api_key"],
    ["expired", { expiresAt: NOW }, undefined, "expired_api_key"],
    ["of a suspended tenant", {}, { state: "suspended" }, "tenant_suspended"],
  ])("is refused if it is %s, the first time and later", async (_, more, tenant, code) => {
    const judge = authenticator(known(key, more, tenant));
    expect([await judged(judge, key.text), await judged(judge, key.text)]).toEqual([code, code]);
  });

  it("is good until it expires", async () => {
    expect(await judged(authenticator(known(key, { expiresAt: NOW + 1 })), key.text)).toEqual(owner);
  });

  it("is not another's, nor one that is not there, nor a token, also behind one that is good", async () => {
    const other = newKey();
    const judge = authenticator(known(key), {
      ...known(other),
      key: { ...known(other).key, hash: known(key).key.hash },
    });
    await judged(judge, key.text);
    for (const text of [other.text, newKey().text, "a.b.c", `${key.text}x`]) {
      expect(await judged(judge, text)).toBe("invalid_api_key");
    }
  });

  it("is known without asking if it was judged before, and no other credential is", async () => {
    const [other, expired] = [newKey(), newKey()];
    const judge = authenticator(known(key), known(other), known(expired, { expiresAt: NOW }));
    const wrong = newKey(key.id).text;
    const texts = [key.text, other.text, expired.text, wrong, newKey().text, "a.b.c", `${key.text}x`];
    expect(texts.map((text) => judge.known(asked(text)))).toEqual(texts.map(() => undefined));
    for (const text of texts) await judged(judge, text);
    expect(texts.map((text) => judge.known(asked(text))?.keyId)).toEqual([
      key.id,
      other.id,
      expired.id,
      ...Array.from({ length: 4 }, () => undefined),
    ]);
  });

  it("may use the models that it and its tenant allow", async () => {
    const models = ["tale-*", "!tale-secret"];
    const { mayUse } = await authenticator(known(key, { models }, { models: ["*-gpt", "tale-secret"] })).judge(
      asked(key.text),
    );
    expect(["tale-gpt", "tale-2", "other-gpt", "tale-secret"].map(mayUse)).toEqual([true, false, false, false]);
  });
});

describe("a ticket", () => {
  const key = newKey();
  const ticket = (more: Partial<Ticket> = {}, under = pepper): string =>
    new Tickets([under]).write({
      keyId: key.id,
      tenant: "acme",
      request: "r.0.m",
      expiresAt: NOW + 1,
      keyEnds: null,
      ...more,
    });
  const read = async (judge: Authenticator, text: string, request = "r.0.m"): Promise<unknown> => {
    try {
      const given = { authorization: [], apiKey: [], target: "/v2", tickets: { texts: [text], request } };
      const { tenant, keyId, scopes } = await judge.judge(given);
      return { tenant, keyId, scopes: [...scopes] };
    } catch (error) {
      if (error instanceof InferenceError) return error.code;
      throw error;
    }
  };

  it("reads its request, as the tenant of its key, and does nothing else", async () => {
    const reader = { tenant: "acme", keyId: key.id, scopes: ["read"] };
    expect(await read(authenticator(known(key)), ticket())).toEqual(reader);
    const asking = new Authenticator({
      keys: { find: () => Promise.resolve(known(key)), peek: () => undefined },
      peppers: [former, pepper],
      now: () => NOW,
    });
    expect(await read(asking, ticket())).toEqual(reader);
  });

  it.each<[string, KnownKey[], string, string]>([
    ["of another request", [known(key)], ticket({ request: "r.0.n" }), "invalid_api_key"],
    ["that has expired", [known(key)], ticket({ expiresAt: NOW }), "invalid_api_key"],
    ["of another deployment", [known(key)], ticket({}, Buffer.alloc(32, 9)), "invalid_api_key"],
    ["in part", [known(key)], ticket().slice(0, -1), "invalid_api_key"],
    ["of no form", [known(key)], "tk_", "invalid_api_key"],
    ["of a key that is gone", [], ticket(), "invalid_api_key"],
    ["of a key that is revoked", [known(key, { revokedAt: 5 })], ticket(), "revoked_api_key"],
    ["of a key that has expired", [known(key, { expiresAt: NOW })], ticket(), "expired_api_key"],
    ["of a suspended tenant", [known(key, {}, { state: "suspended" })], ticket(), "tenant_suspended"],
    ["of a key that reads no longer", [known(key, { scopes: ["infer"] })], ticket(), "insufficient_scope"],
    ["of another tenant", [known(key)], ticket({ tenant: "other" }), "insufficient_scope"],
  ])("is refused: %s", async (_, keys, text, code) => {
    expect(await read(authenticator(...keys), text)).toBe(code);
  });

  it("that an operator got for a tenant reads as that tenant", async () => {
    const judge = authenticator(known(key, { scopes: ["operator", "read"] }));
    expect(await read(judge, ticket({ tenant: "other" }))).toMatchObject({ tenant: "other", scopes: ["read"] });
  });

  it("that an operator got for a tenant has the limits of that tenant", async () => {
    const own = known(key, { scopes: ["operator", "read"] }, { limits: { open_readers: 1 } });
    const record = tenantRecord.parse({ id: "other", limits: { open_readers: 7 } });
    const judge = new Authenticator({
      keys: { find: () => own, peek: () => own },
      peppers: [pepper],
      now: () => NOW,
      tenants: { tenant: () => ({ record }) },
    });
    const given = { authorization: [], apiKey: [], target: "/v2" };
    const tickets = { texts: [ticket({ tenant: "other" })], request: "r.0.m" };
    const { budget } = await judge.judge({ ...given, tickets });
    expect(budget?.readers).toEqual([{ name: "t:other", most: 7 }]);
  });
});
