import { describe, expect, it } from "vitest";
import { InferenceError } from "#shared/errors.js";
import { needGift } from "./gifts.js";
import type { Limits } from "./limits.js";
import type { KeyRecord } from "./records.js";
import { hasScope, type Scope } from "./scopes.js";

function said({ scopes, models }: Gift, gift: Gift): string {
  try {
    needGift({ scopes: new Set(scopes), models }, { ...gift, limits: {} });
    return "given";
  } catch (error) {
    return error instanceof InferenceError ? `${error.code}: ${error.message}` : String(error);
  }
}

interface Gift {
  readonly scopes: Scope[];
  readonly models: string[];
}

describe("a key", () => {
  const admin: Gift = { scopes: ["infer", "admin"], models: ["tale-*"] };

  it("gives what it has", () => {
    expect(said(admin, admin)).toBe("given");
    expect(said(admin, { scopes: [], models: [] })).toBe("given");
    expect(said({ scopes: ["operator"], models: ["*"] }, { scopes: ["admin"], models: ["*"] })).toBe("given");
  });

  it("gives no higher limits than its own", () => {
    const own = { requests_per_second: 10, burst: 20 };
    const giver = { scopes: new Set<Scope>(["admin"]), models: ["*"], key: { limits: own } as KeyRecord };
    const give = (limits: Limits) => () => needGift(giver, { scopes: [], models: [], limits });
    expect(give(own)).not.toThrow();
    expect(give({ requests_per_second: 5 })).not.toThrow();
    for (const limits of [{}, { requests_per_second: 11 }, { requests_per_second: 10, burst: 21 }]) {
      expect(give(limits)).toThrow("the API key cannot give higher limits than its own");
    }
    const operator = { ...giver, scopes: new Set<Scope>(["operator"]) };
    expect(() => needGift(operator, { scopes: [], models: [], limits: {} })).not.toThrow();
  });

  it.each<[gift: Partial<Gift>, text: string]>([
    [{ scopes: ["infer", "read"] }, "insufficient_scope: the API key lacks the scope 'read'"],
    [{ scopes: ["operator"] }, "insufficient_scope: the API key lacks the scope 'operator'"],
    [{ models: ["*"] }, "insufficient_scope: the API key may not use all of these models"],
  ])("does not give %j", (gift, text) => {
    expect(said(admin, { ...admin, ...gift })).toContain(text);
  });
});

it("an operator administers keys without the scope admin, and has no other scope by it", () => {
  const operator: ReadonlySet<Scope> = new Set(["operator"]);
  expect([hasScope(operator, "admin"), hasScope(operator, "operator")]).toEqual([true, true]);
  expect([hasScope(operator, "infer"), hasScope(new Set(["admin"]), "operator")]).toEqual([false, false]);
});
