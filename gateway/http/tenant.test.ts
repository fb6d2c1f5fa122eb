import type { IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import { parseWeights, tenantFrom } from "./tenant.js";

const asking = (headers: Record<string, string>) => ({ headers }) as unknown as IncomingMessage;

describe("the tenant of a request", () => {
  it("is one for all where no header is named", () => {
    expect(tenantFrom("")(asking({ "x-tenant": "acme" }))).toBe("default");
  });

  it("is what the named header says", () => {
    expect(tenantFrom("X-Tenant")(asking({ "x-tenant": "Acme_1-b" }))).toBe("Acme_1-b");
  });

  it.each([
    ["is missing", {}, "forbidden"],
    ["is empty", { "x-tenant": "" }, "invalid_argument"],
    ["comes twice", { "x-tenant": "a, b" }, "invalid_argument"],
    ["holds what separates parts of keys", { "x-tenant": "a:b" }, "invalid_argument"],
    ["holds a hash tag", { "x-tenant": "{0}" }, "invalid_argument"],
    ["is too long", { "x-tenant": "a".repeat(65) }, "invalid_argument"],
  ])("is refused where the header %s", (_, headers, code) => {
    expect(() => tenantFrom("x-tenant")(asking(headers))).toThrow(expect.objectContaining({ code }) as Error);
  });
});

it.each([
  ["", {}],
  ["a=1,b=2", { a: 1, b: 2 }],
  [" a = 10 , b=9999", { a: 10, b: 9999 }],
  ["a", undefined],
  ["a=0", undefined],
  ["a=-1", undefined],
  ["a=1.5", undefined],
  ["a=1,a=2", undefined],
  ["a:b=1", undefined],
])("reads the weights %j", (text, weights) => {
  const read = parseWeights(text);
  expect(read && Object.fromEntries(read)).toEqual(weights);
});
