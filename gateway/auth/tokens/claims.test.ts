import { describe, expect, it } from "vitest";
import { claimAt, ownerIn, type Claims } from "./claims.js";

const usual = { tenant: "tenant", scope: "scope", models: "models" };

describe("a claim", () => {
  const claims = { a: { b: { c: 1 } }, "https://id.example/t": 2, "a.b": 3 };

  it.each([
    ["a.b.c", 1],
    ["https://id.example/t", 2],
    ["a.b", 3],
    ["a.c", undefined],
    ["a.b.c.d", undefined],
    ["toString", undefined],
    ["a.constructor", undefined],
  ])("at %s is %j", (path, value) => {
    expect(claimAt(claims, path)).toBe(value);
  });
});

describe("the claims of a token", () => {
  const owner = (claims: Claims, names = usual): unknown => {
    const found = ownerIn(claims, names);
    return "claim" in found ? found : { ...found, scopes: [...found.scopes] };
  };

  it.each<[string, Claims, string[], string[]]>([
    ["a text", { scope: "infer read  unknown" }, ["infer", "read"], ["*"]],
    ["lists", { scope: ["infer", "", "Admin"], models: ["tale-*", "!x"] }, ["infer"], ["tale-*", "!x"]],
    ["models as a text", { models: "a b" }, [], ["a", "b"]],
    ["nothing more", {}, [], ["*"]],
    ["no models", { models: [] }, [], []],
    ["no scopes", { scope: null }, [], ["*"]],
  ])("say what the request may do: %s", (_, claims, scopes, models) => {
    expect(owner({ tenant: "acme", ...claims })).toEqual({ tenant: "acme", scopes, models });
  });

  it("may have other names, within objects", () => {
    const names = { tenant: "org.id", scope: "realm_access.roles", models: "m" };
    const claims = { org: { id: "acme" }, realm_access: { roles: ["read"] }, tenant: "other" };
    expect(owner(claims, names)).toEqual({ tenant: "acme", scopes: ["read"], models: ["*"] });
  });

  it.each<[string, Claims, object]>([
    ["no tenant", {}, { claim: "tenant", isMissing: true }],
    ["a tenant that holds what separates parts of keys", { tenant: "a:b" }, { claim: "tenant", isMissing: false }],
    ["a number for a tenant", { tenant: 5 }, { claim: "tenant", isMissing: false }],
    ["scopes of no form", { tenant: "a", scope: { infer: true } }, { claim: "scope", isMissing: false }],
    ["a scope that is no text", { tenant: "a", scope: ["infer", 5] }, { claim: "scope", isMissing: false }],
    ["null for models", { tenant: "a", models: null }, { claim: "models", isMissing: false }],
    ["models that are no globs", { tenant: "a", models: ["a/b"] }, { claim: "models", isMissing: false }],
    ["too many models", { tenant: "a", models: Array(65).fill("a") }, { claim: "models", isMissing: false }],
  ])("are refused by name: %s", (_, claims, fault) => {
    expect(owner(claims)).toEqual(fault);
  });
});
