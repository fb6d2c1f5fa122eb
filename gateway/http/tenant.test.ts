import type { IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import { tenantFrom } from "./tenant.js";

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
