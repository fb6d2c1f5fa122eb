import { describe, expect, it } from "vitest";
import { InferenceError } from "#shared/errors.js";
import { Authenticator } from "./authenticator.js";
import { digestOf, newKey, type NewKey } from "./key.js";
import type { KnownKey } from "./known-keys.js";
import { hashText, keyRecord, tenantRecord } from "./records.js";

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
    keys: { find: (id) => byId.get(id) },
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
      keys: { find: () => Promise.resolve(known(key)) },
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

  it("may use the models that it and its tenant allow", async () => {
    const models = ["tale-*", "!tale-secret"];
    const { mayUse } = await authenticator(known(key, { models }, { models: ["*-gpt", "tale-secret"] })).judge(
      asked(key.text),
    );
    expect(["tale-gpt", "tale-2", "other-gpt", "tale-secret"].map(mayUse)).toEqual([true, false, false, false]);
  });
});
