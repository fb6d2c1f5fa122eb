/** What an operator sees of the fleet and does for another tenant, and what other keys do not. */
import { beforeAll, describe, expect, it } from "vitest";
import { scopes, usualScopes } from "../../gateway/auth/owner/scopes.js";
import { ask, simpleBody } from "../jobs/ask.js";
import { useKeyedFleet, type Key } from "./keyed.js";

const { served, make, setTenant } = useKeyedFleet({ models: ["simple", "echo-int32"] });
let operator: Key;
let acme: Key;
let other: Key;
beforeAll(async () => {
  operator = await make({ tenant: "ops", scopes });
  acme = await make({ models: ["simple"] });
  other = await make({ tenant: "other" });
});

const get = (path: string, key: Key, more: object = {}) =>
  ask(served.url + path, { headers: { ...key.headers, ...more } });
const submit = (key: Key, model = "simple", more: object = {}) =>
  ask(`${served.url}/v2/models/${model}/jobs`, {
    body: { infer: simpleBody(1), delay: 3_600_000 },
    headers: { ...key.headers, ...more },
  });
const idsOf = async (key: Key, more: object = {}) => (await get("/v2/jobs", key, more)).body.data.map(({ id }) => id);

describe("the fleet", () => {
  it("shows its hosts and all of its models to an operator", async () => {
    const { body } = await get("/v2/fleet", operator);
    const { workers, models } = body as unknown as Record<string, readonly { name: string }[]>;
    expect(workers).toMatchObject([{ host: expect.any(String) as string, pid: expect.any(Number) as number }]);
    expect(models?.map(({ name }) => name)).toEqual(["echo-int32", "simple"]);
  });

  it("shows any other key its models and the load of its own tenant, and no host", async () => {
    const worker = served.fleet.workers[0];
    await worker?.kill();
    const background = { prefer: "respond-async" };
    const path = `${served.url}/v2/models/simple/infer`;
    for (const key of [acme, other, other]) {
      const { status } = await ask(path, { body: simpleBody(1), headers: { ...key.headers, ...background } });
      expect(status).toBe(202);
    }
    const digest = expect.any(String) as string;
    expect((await get("/v2/fleet", acme)).body).toEqual({
      models: [{ name: "simple", version: "1", digest }],
      queue: { tenants: [{ name: "acme", requests: 1, bytes: expect.any(Number) as number }] },
    });
    expect((await get("/v2/fleet", other)).body).toMatchObject({ queue: { tenants: [{ requests: 2 }] } });
    await worker?.start();
  });
});

describe("the settings of a gateway", () => {
  interface Shown {
    readonly settings: readonly { readonly name: string; readonly value: string | null; readonly given: boolean }[];
  }

  it("are shown to an operator, without a secret, and to no other key", async () => {
    const { settings } = (await get("/v2/settings", operator)).body as unknown as Shown;
    expect(settings.find(({ name }) => name === "BATON_AUTH")).toMatchObject({ value: "keys", given: true });
    expect(settings.find(({ name }) => name === "BATON_SECRETS_KEY")?.value).toBeNull();
    expect(settings.length).toBeGreaterThan(80);
    expect((await get("/v2/settings", acme)).status).toBe(403);
  });
});

describe("the header baton-tenant", () => {
  const naming = (tenant: string) => ({ "baton-tenant": tenant });

  it("lets an operator act for another tenant", async () => {
    const { status, body } = await submit(operator, "simple", naming("acme"));
    expect(status).toBe(202);
    expect(await idsOf(acme)).toContain(body.id);
    expect(await idsOf(operator, naming("acme"))).toContain(body.id);
    expect(await idsOf(operator)).toEqual([]);
    await setTenant("narrow", { models: ["simple"] });
    const hidden = await submit(operator, "echo-int32", naming("narrow"));
    expect([hidden.status, hidden.body.code]).toEqual([404, "unknown_model"]);
  });

  it("is refused to any other key, for every tenant, and has no effect", async () => {
    const before = await idsOf(other);
    for (const tenant of ["other", "acme", "never", "*"]) {
      const { status, body, headers } = await submit(acme, "simple", naming(tenant));
      expect([status, body.code]).toEqual([403, "insufficient_scope"]);
      expect(headers.get("www-authenticate")).toContain('scope="operator"');
      expect((await get("/v2/jobs", acme, naming(tenant))).status).toBe(403);
      const infer = { body: simpleBody(1), headers: { ...acme.headers, ...naming(tenant) } };
      expect((await ask(`${served.url}/v2/models/simple/infer`, infer)).status).toBe(403);
    }
    expect(await idsOf(other)).toEqual(before);
  });

  it("names one tenant by its whole name", async () => {
    for (const tenant of ["*", "a:b", "{0}", "acme, other", ""]) {
      expect([tenant, (await get("/v2/jobs", operator, naming(tenant))).status]).toEqual([tenant, 400]);
    }
  });

  it("is no header of a proxy: another header that names a tenant means nothing", async () => {
    const { body } = await submit(acme, "simple", { "x-tenant": "other", baton_tenant: "other" });
    expect(await idsOf(acme)).toContain(body.id);
    expect(await idsOf(other, { "x-tenant": "acme" })).not.toContain(body.id);
  });

  it("opens nothing without the scope of the path", async () => {
    const narrow = await make({ scopes: ["operator"] });
    expect((await get("/v2/jobs", narrow, naming("acme"))).status).toBe(403);
    expect(usualScopes).not.toContain("operator");
  });
});
