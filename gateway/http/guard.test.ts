import { describe, expect, it } from "vitest";
import type { Owner } from "../auth/owner/owner.js";
import { newKey } from "../auth/key.js";
import { fixedError } from "#shared/errors.js";
import { RequestBudget } from "../admission/budget.js";
import { parseRanges } from "../webhooks/addresses.js";
import { Peers } from "./peers.js";
import { admitTo, keyGuard, openGuard, type KeyGuardParts } from "./guard.js";

const asking = (headers: Record<string, string>) => ({ headers, target: "/v2" });
const tenantFrom = (header: string, headers: Record<string, string>) =>
  (openGuard(header).ownerOf(asking(headers)) as Owner).tenant;

describe("the tenant of a request without a key", () => {
  it("is one for all if no header is named", () => {
    expect(tenantFrom("", { "x-tenant": "acme" })).toBe("default");
  });

  it("is the value of the named header", () => {
    expect(tenantFrom("X-Tenant", { "x-tenant": "Acme_1-b" })).toBe("Acme_1-b");
  });

  it.each([
    ["is missing", {}, "forbidden"],
    ["is empty", { "x-tenant": "" }, "invalid_argument"],
    ["comes twice", { "x-tenant": "a, b" }, "invalid_argument"],
    ["holds what separates parts of keys", { "x-tenant": "a:b" }, "invalid_argument"],
    ["holds a hash tag", { "x-tenant": "{0}" }, "invalid_argument"],
    ["is too long", { "x-tenant": "a".repeat(65) }, "invalid_argument"],
  ])("is refused if the header %s", (_, headers, code) => {
    expect(() => tenantFrom("x-tenant", headers)).toThrow(expect.objectContaining({ code }) as Error);
  });
});

describe("the header of a proxy", () => {
  it("counts from the proxies that the operator names, and from nobody else", () => {
    const guard = openGuard("x-tenant", new Peers(parseRanges("10.0.0.0/8")));
    const from = (peer: string) => guard.ownerOf({ ...asking({ "x-tenant": "acme" }), peer });
    expect(from("::ffff:10.0.0.1")).toMatchObject({ tenant: "acme" });
    const refusal = expect.objectContaining({
      code: "forbidden",
      message: expect.stringContaining("TRUSTED"),
    }) as Error;
    expect(() => from("192.0.2.1")).toThrow(refusal);
    const share = (peer: string) => guard.shareOf?.({ ...asking({ "x-tenant": "acme" }), peer }).name;
    expect([share("10.0.0.1"), share("192.0.2.1")]).toEqual(["acme", "with another credential"]);
    expect(() => guard.ownerOf(asking({}))).toThrow(refusal);
  });
});

describe("a request with a key", () => {
  const { text } = newKey();
  const owner = { tenant: "acme", keyId: "k", scopes: new Set(["read"] as const), models: ["*"], mayUse: () => true };
  const guardWith = (judge: KeyGuardParts["authenticator"]["judge"]) =>
    keyGuard(
      {
        authenticator: { judge },
        tenants: {
          termsOf: (tenant) =>
            tenant === "gone"
              ? Promise.reject(fixedError("tenant_suspended", "usual"))
              : Promise.resolve({
                  mayUse: startsWithB,
                  limited: { id: tenant, limits: {} },
                  budget: new RequestBudget({ rates: [] }),
                }),
        },
        readers: { add: () => () => undefined },
      },
      new Set(),
    );
  const startsWithB = (model: string) => model.startsWith("b");
  const guard = guardWith(({ apiKey, authorization }) => ({ ...owner, given: [...authorization, ...apiKey] }) as never);

  it("is judged by all headers that may have the key", () => {
    const headers = { authorization: `Bearer ${text}`, "api-key": "a", "x-api-key": "b" };
    expect(guard.ownerOf(asking(headers))).toMatchObject({ given: [`Bearer ${text}`, "a", "b"] });
    const several = {
      ...asking(headers),
      distinct: () => ({ authorization: ["c", "d"], "api-key": ["a"], "x-api-key": ["b"] }),
    };
    expect(guard.ownerOf(several)).toMatchObject({ given: ["c", "d", "a", "b"] });
  });

  it("takes the share of its tenant if that is known, else the share of strangers", () => {
    const tenants = { termsOf: () => Promise.reject(new Error("was asked")) };
    const judge = () => Promise.reject(new Error("was asked"));
    const known: KeyGuardParts["known"] = ({ authorization: [one] }) =>
      one === undefined || one.length > 1
        ? undefined
        : { ...owner, tenant: one, ...(one === "a" && { budget: { rates: [], weight: 7 } }) };
    const weights = new Map([["b", 2]]);
    const readers = { add: () => () => undefined };
    const { shareOf } = keyGuard({ authenticator: { judge }, known, weights, tenants, readers }, new Set());
    const asked: readonly [Record<string, string>, string?][] = [
      [{ authorization: "a" }],
      [{ authorization: "b" }],
      [{ authorization: "c" }],
      [{ "api-key": "?" }],
      [{ authorization: "Bearer a.b.c" }],
      [{}],
      [{}, "/v2/requests/r/ws?ticket=tk_a.b"],
      [{ "sec-websocket-protocol": "baton.v1, baton.ticket.tk_b.c" }],
      [{ authorization: "a" }, "/v2/health/live"],
    ];
    expect(asked.map(([headers, target = "/v2"]) => shareOf?.({ headers, target }))).toEqual([
      { name: "a", weight: 7 },
      { name: "b", weight: 2 },
      { name: "c", weight: 1 },
      { name: "with another credential", weight: 1 },
      { name: "with a new token", weight: 1 },
      { name: "without a credential", weight: 1 },
      { name: "with a ticket", weight: 1 },
      { name: "with a ticket", weight: 1 },
      { name: "health", weight: 100 },
    ]);
    const operator = { ...owner, tenant: "op", scopes: new Set(["operator"] as const) };
    const parts = { authenticator: { judge }, known: () => operator, weights, tenants, readers };
    const acting = keyGuard(parts, new Set());
    const names = [{ "baton-tenant": "b" }, { "baton-tenant": "*" }, {}];
    expect(names.map((more) => acting.shareOf?.(asking({ authorization: "x", ...more })))).toEqual([
      { name: "b", weight: 2 },
      { name: "op", weight: 1 },
      { name: "op", weight: 1 },
    ]);
  });

  it("may have a ticket in its query or among its protocols, on a path that reads a request", () => {
    const given = guardWith(({ tickets }) => ({ ...owner, tickets }) as never);
    const request = {
      headers: { "sec-websocket-protocol": "baton.v1, baton.ticket.tk_b.c" },
      target: "/v2/requests/r/ws?after=1&ticket=tk_a.b#?ticket=tk_no",
    };
    expect(given.ownerOf(request)).toMatchObject({ tickets: undefined });
    const tickets = { texts: ["tk_a.b", "tk_b.c"], request: "r" };
    expect(given.ownerOf({ ...request, reads: "r" })).toMatchObject({ tickets });
    expect(given.ownerOf({ ...asking({}), reads: "r" })).toMatchObject({ tickets: { texts: [] } });
  });

  it("may do what its scopes allow, whether or not Redis has to be asked", async () => {
    const asked = guardWith(() => Promise.resolve(owner));
    for (const one of [guard, asked]) {
      expect(await admitTo(one, asking({}), "read")).toMatchObject({ tenant: "acme" });
      const refused = async () => admitTo(one, asking({}), "infer");
      await expect(refused()).rejects.toMatchObject({
        code: "insufficient_scope",
        message: "the API key lacks the scope 'infer'",
      });
    }
  });

  it("acts for the tenant that an operator names", async () => {
    const operator = { ...owner, models: ["*", "!*c"], scopes: new Set(["operator"] as const) };
    const acting = await guardWith(() => operator).ownerOf(asking({ "baton-tenant": "other" }));
    expect(acting).toMatchObject({ tenant: "other", keyId: "k" });
    expect(["bb", "bc", "ab"].map((model) => acting.mayUse(model))).toEqual([true, false, false]);
  });

  it.each([
    ["nobody but an operator acts", ["read"] as const, "other", "insufficient_scope"],
    ["nobody but an operator acts, even for its own tenant", ["admin"] as const, "acme", "insufficient_scope"],
    ["an operator names no pattern", ["operator"] as const, "*", "invalid_argument"],
    ["an operator names one tenant", ["operator"] as const, "a, b", "invalid_argument"],
    ["a suspended tenant does nothing", ["operator"] as const, "gone", "tenant_suspended"],
  ])("acts for no other tenant: %s", async (_, scopes, tenant, code) => {
    const one = guardWith(() => ({ ...owner, scopes: new Set(scopes) }));
    const acting = async () => one.ownerOf(asking({ "baton-tenant": tenant }));
    await expect(acting()).rejects.toMatchObject({ code });
  });
});
