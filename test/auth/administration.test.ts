/** Keys and tenants are administered by the API, and no caller gives or sees more than its own. */
import { beforeAll, describe, expect, it } from "vitest";
import { keyId } from "../../gateway/auth/key.js";
import type { KeyView } from "../../gateway/auth/key-view.js";
import { scopes, usualScopes, type Scope } from "../../gateway/auth/owner/scopes.js";
import { useKeyedFleet } from "./keyed.js";

const keyed = useKeyedFleet({ models: ["echo-int32"], jobs: 1, direct: true });
const { served } = keyed;
const made = async (tenant: string, some: readonly Scope[], models: readonly string[] = ["*"]) =>
  (await keyed.make({ tenant, scopes: some, models })).text;

/** Keys of an operator, and of an administrator of `acme` who may use few models. */
let [operator, admin] = ["", ""];
beforeAll(async () => {
  operator = await made("default", scopes);
  admin = await made("acme", ["infer", "read", "admin"], ["tale-*", "echo-int32"]);
});

type Json = Readonly<Record<string, unknown>>;
interface Answer<T = Json> {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
  readonly body: T;
}

async function ask<T = Json>(
  key: string,
  method: string,
  path: string,
  body?: unknown,
  more: Readonly<Record<string, string>> = {},
): Promise<Answer<T>> {
  const response = await fetch(`${served.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, ...more },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const { status, headers } = response;
  return { status, text, headers, body: (text === "" ? {} : JSON.parse(text)) as T };
}

type Shown = KeyView & { readonly key: string };
interface List<T> {
  readonly data: readonly T[];
  readonly has_more: boolean;
  readonly last_id: string;
}
const refusal = ({ status, body }: Answer): unknown => [status, body["code"]];
const make = (key: string, terms: object, more?: Readonly<Record<string, string>>) =>
  ask<Shown>(key, "POST", "/v2/keys", terms, more);

describe("whoami", () => {
  it("shows the key of any caller, without its secret", async () => {
    const bare = await made("acme", []);
    const { status, body } = await ask(bare, "GET", "/v2/whoami");
    expect([status, body]).toEqual([
      200,
      {
        tenant: "acme",
        auth: "keys",
        key: {
          id: keyId(bare),
          object: "key",
          tenant: "acme",
          name: "",
          last4: bare.slice(-4),
          scopes: [],
          models: ["*"],
          state: "active",
          created_at: expect.stringMatching(/Z$/) as string,
          created_by: null,
          expires_at: null,
          revoked_at: null,
          last_used_at: expect.stringMatching(/Z$/) as string,
          rotated_from: null,
          limits: {},
          source: "redis",
        },
        limits: {},
        used: expect.objectContaining({ queued_requests: 0, schedules: 0 }) as object,
      },
    ]);
  });
});

describe("a new key", () => {
  it("is shown once, is good at once, and has what was asked for", async () => {
    const expires = new Date(Date.now() + 3_600_000).toISOString();
    const terms = {
      name: "ci",
      scopes: ["infer", "read"],
      models: ["tale-x", "tale-y-*"],
      expires_at: expires,
      limits: {},
    };
    const { status, body, headers } = await make(admin, terms);
    expect(status).toBe(201);
    expect(body).toMatchObject({ ...terms, tenant: "acme", object: "key", state: "active", created_by: keyId(admin) });
    expect(keyId(body.key)).toBe(body.id);
    expect(body.key.slice(-4)).toBe(body.last4);
    expect(headers.get("location")).toBe(`/v2/keys/${body.id}`);
    expect((await ask(body.key, "GET", "/v2/jobs")).status).toBe(200);
    const { key: _, ...view } = body;
    expect((await ask(admin, "GET", `/v2/keys/${body.id}`)).body).toEqual(view);
    expect((await keyed.redis.get(`{keys}:key:${body.id}`)) ?? "").not.toContain(body.key);
  });

  it("has the usual scopes and its maker's models unless the maker says otherwise", async () => {
    expect((await make(operator, { tenant: "acme" })).body).toMatchObject({ scopes: usualScopes, models: ["*"] });
    expect((await make(admin, { scopes: [] })).body).toMatchObject({ scopes: [], models: ["tale-*", "echo-int32"] });
  });

  it.each([
    ["a scope that its maker lacks", { scopes: ["infer", "files"] }, "lacks the scope 'files'"],
    ["the rights of an operator", { scopes: ["operator"] }, "lacks the scope 'operator'"],
    ["the usual scopes, if its maker lacks some", {}, "lacks the scope 'cancel'"],
    ["models that its maker lacks", { scopes: ["infer"], models: ["*"] }, "may not use all of these models"],
    ["another tenant", { scopes: ["infer"], tenant: "other" }, "lacks the scope 'operator'"],
  ])("does not get %s", async (_, terms, text) => {
    const before = await keyed.redis.zcard("{keys}:ids");
    const refused = await ask(admin, "POST", "/v2/keys", terms);
    expect(refusal(refused)).toEqual([403, "insufficient_scope"]);
    expect(refused.text).toContain(text);
    expect(refused.headers.get("www-authenticate")).toContain('error="insufficient_scope"');
    expect(await keyed.redis.zcard("{keys}:ids")).toBe(before);
  });

  it.each([
    [{ owner: "me" }, "unknown member 'owner'"],
    [{ tenant: "a:b" }, "the tenant must be"],
    [{ scopes: ["infer", "all"] }, "scopes: there is no scope 'all'"],
    [{ scopes: "infer" }, "'scopes'"],
    [{ models: ["a b"] }, "models: 'a b' is no glob"],
    [{ models: Array(65).fill("a") }, "models: more than 64 globs"],
    [{ name: "x".repeat(101) }, "name must be at most 100 characters"],
    [{ name: "\u001b[2J" }, "no control characters"],
    [{ expires_at: "tomorrow" }, "expires_at must be a time"],
    [{ expires_at: "2020-01-01T00:00:00Z" }, "expires_at must not lie in the past"],
    [{ limits: { tokens_per_hour: 10 } }, "limits: 'tokens_per_hour' is not supported"],
    [{ limits: { requests_per_second: -1 } }, "limits: requests_per_second: "],
    [{ limits: { burst: 5 } }, "limits: burst needs requests_per_second"],
  ])("is refused for %j", async (terms, text) => {
    const refused = await ask(operator, "POST", "/v2/keys", terms);
    expect(refusal(refused)).toEqual([400, "invalid_argument"]);
    expect(refused.text).toContain(text);
  });

  it("is shown again only to a caller that may still give it", async () => {
    const narrowed = await made("narrowed", ["admin", "infer", "read"]);
    const under = { "idempotency-key": "wide" };
    const create = () => ask(narrowed, "POST", "/v2/keys", { scopes: ["read"], name: "wide" }, under);
    const first = await create();
    expect([first.status, (await create()).text]).toEqual([201, first.text]);
    const rotate = () =>
      ask(narrowed, "POST", `/v2/keys/${String(first.body["id"])}/rotate`, {}, { "idempotency-key": "again" });
    expect((await rotate()).status).toBe(201);
    await ask(operator, "PATCH", `/v2/keys/${keyId(narrowed)}`, { scopes: ["admin", "infer"] });
    await expect.poll(async () => refusal(await create()), { timeout: 5_000 }).toEqual([403, "insufficient_scope"]);
    expect(refusal(await rotate())).toEqual([403, "insufficient_scope"]);
  });

  it("is the same under the same Idempotency-Key of the same caller, and Redis has it sealed", async () => {
    const under = { "idempotency-key": "once" };
    const terms = { name: "once", scopes: ["infer"], models: ["echo-int32"] };
    const copies = await Promise.all(Array.from({ length: 5 }, () => make(admin, terms, under)));
    const [first] = copies;
    expect(new Set(copies.map(({ status, text }) => `${status} ${text}`))).toEqual(new Set([`201 ${first?.text}`]));
    const replayed = copies.filter(({ headers }) => headers.get("idempotent-replayed") === "true");
    expect(replayed).toHaveLength(4);
    const other = await ask(admin, "POST", "/v2/keys", { ...terms, name: "twice" }, under);
    expect(refusal(other)).toEqual([422, "idempotency_mismatch"]);
    expect((await make(operator, terms, under)).body.id).not.toBe(first?.body.id);
    for (const name of await keyed.redis.keys("{keys}:kept:*")) {
      const kept = (await keyed.redis.get(name)) ?? "";
      expect(kept).toMatch(/^sealed:/);
      expect(Buffer.from(kept.split(":")[2] ?? "", "base64").toString("latin1")).not.toContain("bt_");
      expect(await keyed.redis.pttl(name)).toBeGreaterThan(500_000);
    }
  });
});

describe("keys", () => {
  it("are listed by pages, tenant and state, and of the own tenant alone", async () => {
    const own = await made("lists", ["admin"]);
    const ids = [];
    for (let i = 0; i < 5; i++) ids.unshift((await make(own, { scopes: [], name: `n${i}` })).body.id);
    await ask(own, "DELETE", `/v2/keys/${ids[2]}`);
    const list = async (key: string, query: string) => (await ask<List<KeyView>>(key, "GET", `/v2/keys${query}`)).body;
    const all = [...ids, keyId(own)];
    const first = await list(own, "?limit=4");
    expect([first.data.map(({ id }) => id), first.has_more]).toEqual([all.slice(0, 4), true]);
    const rest = await list(own, `?limit=4&after=${first.last_id}`);
    expect([rest.data.map(({ id }) => id), rest.has_more]).toEqual([all.slice(4), false]);
    expect((await list(own, "?state=revoked")).data.map(({ id }) => id)).toEqual([ids[2]]);
    expect((await list(own, "?state=active")).data).toHaveLength(5);
    expect((await list(operator, "?tenant=lists")).data).toHaveLength(6);
    const tenants = (await list(operator, "?limit=100")).data.map(({ tenant }) => tenant);
    expect(new Set(tenants)).toContain("default");
    expect(JSON.stringify(await list(operator, "?limit=100"))).not.toMatch(/bt_|hmac/);
    expect(refusal(await ask(own, "GET", "/v2/keys?tenant=acme"))).toEqual([403, "insufficient_scope"]);
    expect(refusal(await ask(own, "GET", "/v2/keys?state=gone"))).toEqual([400, "invalid_argument"]);
    expect(refusal(await ask(own, "GET", `/v2/keys?after=${keyId(admin)}`))).toEqual([400, "invalid_argument"]);
  });

  it("of another tenant answer as keys that there never were", async () => {
    const foreign = keyId(await made("other", ["infer"]));
    for (const [method, rest, body] of [
      ["GET", ""],
      ["PATCH", "", { name: "mine" }],
      ["DELETE", ""],
      ["POST", "/rotate", {}],
    ] as const) {
      const [there, never] = [
        await ask(admin, method, `/v2/keys/${foreign}${rest}`, body),
        await ask(admin, method, `/v2/keys/0123456789ab${rest}`, body),
      ];
      expect(refusal(there)).toEqual([404, "unknown_key"]);
      expect(there.text).toBe(never.text);
    }
    expect((await ask(operator, "GET", `/v2/keys/${foreign}`)).body).toMatchObject({ state: "active", name: "" });
  });

  it("change their members, each as a whole, within what the caller has", async () => {
    const { id, key } = (await make(admin, { scopes: ["read"], models: ["tale-x"] })).body;
    const change = (who: string, members: object) => ask(who, "PATCH", `/v2/keys/${id}`, members);
    expect((await change(admin, { name: "new", scopes: ["infer"], models: [] })).body).toMatchObject({
      name: "new",
      scopes: ["infer"],
      models: [],
    });
    await expect.poll(async () => refusal(await ask(key, "GET", "/v2/jobs"))).toEqual([403, "insufficient_scope"]);
    expect((await change(admin, { expires_at: "2100-01-01T00:00:00Z" })).body).toMatchObject({
      expires_at: "2100-01-01T00:00:00.000Z",
    });
    expect((await change(admin, { expires_at: null })).body).toMatchObject({ expires_at: null });
    expect(refusal(await change(admin, { scopes: ["files"] }))).toEqual([403, "insufficient_scope"]);
    expect(refusal(await change(admin, { tenant: "other" }))).toEqual([400, "invalid_argument"]);
    const strong = keyId(await made("acme", scopes));
    for (const [method, rest, body] of [
      ["PATCH", "", { name: "x" }],
      ["POST", "/rotate", {}],
    ] as const) {
      const refused = await ask(admin, method, `/v2/keys/${strong}${rest}`, body);
      expect(refusal(refused)).toEqual([403, "insufficient_scope"]);
    }
  });

  it("live no longer than the key of an administrator who makes them", async () => {
    const short = (await keyed.make({ scopes: ["infer", "admin"], livesMs: 3_600_000 })).text;
    const { expires_at: end } = (await ask(short, "GET", "/v2/whoami")).body["key"] as KeyView;
    const child = (await ask<Shown>(short, "POST", "/v2/keys", { scopes: ["infer"] })).body;
    expect(child.expires_at).toBe(end);
    for (const body of [{ expires_at: null }, { expires_at: "2099-01-01T00:00:00Z" }]) {
      expect(refusal(await ask(short, "PATCH", `/v2/keys/${child.id}`, body))).toEqual([403, "insufficient_scope"]);
      const scopes = ["infer"];
      expect(refusal(await ask(short, "POST", "/v2/keys", { ...body, scopes }))).toEqual([403, "insufficient_scope"]);
    }
  });

  it("are revoked, also by themselves and twice, and are refused within five seconds", async () => {
    const own = await made("acme", ["admin"]);
    const revoked = await ask(own, "DELETE", `/v2/keys/${keyId(own)}`);
    expect([revoked.status, revoked.body["state"]]).toEqual([200, "revoked"]);
    const again = await ask(operator, "DELETE", `/v2/keys/${keyId(own)}`);
    expect([again.status, again.text]).toEqual([200, revoked.text]);
    const code = async () => refusal(await ask(own, "GET", "/v2/keys"));
    await expect.poll(code, { timeout: 5_000 }).toEqual([401, "revoked_api_key"]);
    expect(await keyed.redis.pttl(`{keys}:key:${keyId(own)}`)).toBeGreaterThan(29 * 86_400_000);
  });

  it("leave no successor if they are revoked while they are rotated, and keep one that is there", async () => {
    const { id } = await keyed.make();
    const drafted = keyed.keys.draftSuccessor(await keyed.keys.find(id), await keyed.keys.now(), undefined);
    await keyed.keys.revoke(id);
    await expect(keyed.keys.write(drafted.record)).rejects.toMatchObject({ code: "unknown_key" });
    await expect(keyed.keys.find(drafted.record.id)).rejects.toMatchObject({ code: "unknown_key" });
    const other = await keyed.make();
    const { record } = await keyed.keys.rotate(other.id, 60_000, undefined);
    await keyed.keys.revoke(other.id);
    await keyed.keys.write(record, 60_000);
    expect(await keyed.keys.find(record.id)).toEqual(record);
  });

  it("are rotated: the new key has the same rights, and the former ends after the overlap", async () => {
    const { id, key } = (await make(admin, { scopes: ["read"], models: ["tale-x"], name: "turning" })).body;
    const path = `/v2/keys/${id}/rotate`;
    const under = { "idempotency-key": "turn" };
    const { status, body, text } = await ask<Shown>(admin, "POST", path, { overlap: 3_600_000 }, under);
    expect(status).toBe(201);
    expect(body).toMatchObject({
      scopes: ["read"],
      models: ["tale-x"],
      name: "turning",
      rotated_from: id,
      expires_at: null,
    });
    expect((await ask(admin, "POST", path, { overlap: 3_600_000 }, under)).text).toBe(text);
    const former = (await ask<KeyView>(admin, "GET", `/v2/keys/${id}`)).body;
    expect(Date.parse(former.expires_at ?? "") - Date.parse(body.created_at ?? "")).toBe(3_600_000);
    for (const one of [key, body.key]) expect((await ask(one, "GET", "/v2/jobs")).status).toBe(200);
    const { body: third } = await ask<Shown>(admin, "POST", `/v2/keys/${body.id}/rotate`);
    expect((await ask(third.key, "GET", "/v2/jobs")).status).toBe(200);
    await expect
      .poll(async () => refusal(await ask(body.key, "GET", "/v2/jobs")), { timeout: 5_000 })
      .toEqual([401, "expired_api_key"]);
    expect(refusal(await ask(admin, "POST", `/v2/keys/${body.id}/rotate`))).toEqual([404, "unknown_key"]);
    const long = await ask(admin, "POST", `/v2/keys/${third.id}/rotate`, { overlap: 31 * 86_400_000 });
    expect(refusal(long)).toEqual([400, "invalid_argument"]);
  });

  it("leave one operator at least", async () => {
    const active = async () => {
      const { data } = (await ask<List<KeyView>>(operator, "GET", "/v2/keys?state=active&limit=100")).body;
      return data.filter((one) => one.scopes.includes("operator") && one.id !== keyId(operator));
    };
    for (const { id } of await active()) await ask(operator, "DELETE", `/v2/keys/${id}`);
    const last = `/v2/keys/${keyId(operator)}`;
    const refused = [409, "last_operator_key"];
    expect(refusal(await ask(operator, "DELETE", last))).toEqual(refused);
    expect(refusal(await ask(operator, "PATCH", last, { scopes: ["admin"] }))).toEqual(refused);
    // Of two operators that revoke each other at once, one stays.
    const two = [await made("default", scopes), await made("default", scopes)];
    const answers = await Promise.all(
      [operator, ...two].map((key, i, all) => ask(operator, "DELETE", `/v2/keys/${keyId(all[(i + 1) % 3] ?? key)}`)),
    );
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 200, 409]);
    [operator] = [await made("default", scopes)];
  });
});

describe("tenants", () => {
  it("are made, listed, changed, suspended and removed by operators", async () => {
    const { status, body, headers } = await ask(operator, "POST", "/v2/tenants", {
      id: "blue",
      weight: 3,
      models: ["echo-*"],
      limits: { requests_per_second: 0.5, queued_requests: 9 },
    });
    expect([status, headers.get("location")]).toEqual([201, "/v2/tenants/blue"]);
    const created = expect.stringMatching(/Z$/) as string;
    const view = {
      id: "blue",
      object: "tenant",
      weight: 3,
      models: ["echo-*"],
      state: "active",
      limits: { requests_per_second: 0.5, queued_requests: 9 },
      created_at: created,
    };
    expect(body).toEqual(view);
    expect(refusal(await ask(operator, "POST", "/v2/tenants", { id: "blue" }))).toEqual([409, "tenant_exists"]);
    await ask(operator, "POST", "/v2/tenants", { id: "red" });
    const { data, has_more } = (await ask<List<{ id: string }>>(operator, "GET", "/v2/tenants?limit=1")).body;
    expect([data.map(({ id }) => id), has_more]).toEqual([["red"], true]);
    const next = (await ask<List<Json>>(operator, "GET", "/v2/tenants?after=red")).body;
    expect(next.data).toEqual([view]);
    expect((await ask(operator, "GET", "/v2/tenants/blue")).body).toEqual(view);
    expect(refusal(await ask(operator, "GET", "/v2/tenants/none"))).toEqual([404, "unknown_tenant"]);
    expect(refusal(await ask(admin, "GET", "/v2/tenants"))).toEqual([403, "insufficient_scope"]);

    const { key, id } = (await make(operator, { tenant: "blue" })).body;
    const infer = { inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }] };
    const yearly = { cron: "0 0 1 1 *", job: { infer } };
    expect((await ask(key, "POST", "/v2/models/echo-int32/schedules", yearly)).status).toBe(201);
    const models = async () => (await ask(key, "POST", "/v2/repository/index")).text;
    expect(await models()).toContain("echo-int32");
    await ask(operator, "PATCH", "/v2/tenants/blue", { models: ["tale-*"] });
    await expect.poll(models, { timeout: 5_000 }).toBe("[]");

    const hook = { url: "https://example.com/", events: ["job.completed"] };
    const webhook = await ask(key, "POST", "/v2/webhooks", hook);
    expect(webhook.status).toBe(201);
    const form = new FormData();
    form.append("purpose", "batch");
    form.append("file", new Blob(["{}\n"]), "lines.jsonl");
    const upload = await fetch(`${served.url}/v1/files`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: form,
    });
    expect(upload.status).toBe(200);
    const { id: file } = (await upload.json()) as { id: string };

    const things = ["{hooks}:webhooks:blue", "{schedules}:ids:blue", `{files}:file:blue:${file}`];
    const there = () => Promise.all(things.map((thing) => keyed.redis.exists(thing)));
    expect(await there()).toEqual([1, 1, 1]);
    expect(refusal(await ask(operator, "DELETE", "/v2/tenants/blue"))).toEqual([409, "tenant_in_use"]);
    const suspended = await ask(operator, "PATCH", "/v2/tenants/blue", { state: "suspended" });
    expect(suspended.body).toEqual({ ...view, models: ["tale-*"], state: "suspended" });
    await expect
      .poll(async () => refusal(await ask(key, "GET", "/v2/whoami")), { timeout: 5_000 })
      .toEqual([403, "tenant_suspended"]);
    expect(refusal(await ask(operator, "DELETE", "/v2/tenants/blue"))).toEqual([409, "tenant_in_use"]);
    await ask(operator, "DELETE", `/v2/keys/${id}`);
    expect((await ask(operator, "DELETE", "/v2/tenants/blue")).status).toBe(204);
    expect(refusal(await ask(operator, "DELETE", "/v2/tenants/blue"))).toEqual([404, "unknown_tenant"]);
    expect(await there()).toEqual([0, 0, 0]);
  });

  it.each([
    [{ id: "a*" }, "the tenant must be"],
    [{ id: "a", weight: 0 }, "weight must be an integer from 1 to 9999"],
    [{ id: "a", limits: { stored_bytes: 1 } }, "limits: 'stored_bytes' is not supported"],
    [{ id: "a", state: "active" }, "unknown member 'state'"],
    [{}, "'id'"],
  ])("are refused for %j", async (terms, text) => {
    const refused = await ask(operator, "POST", "/v2/tenants", terms);
    expect(refusal(refused)).toEqual([400, "invalid_argument"]);
    expect(refused.text).toContain(text);
  });
});
