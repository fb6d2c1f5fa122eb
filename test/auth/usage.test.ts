/** The usage of a key is in `/v2/usage`, on every way; and a quota that is used up refuses. */
import { OpenAI, RateLimitError } from "openai";
import { describe, expect, it } from "vitest";
import { ask, simpleBody } from "../jobs/ask.js";
import { readUntil } from "../support/until.js";
import { useKeyedFleet, type Key } from "./keyed.js";

const MODEL = "gen-mha";
const { served, make, setTenant } = useKeyedFleet({ models: [MODEL, "simple", "accumulate"], direct: true });

let made = 0;
/** Keys of a new tenant: one that uses models, and one that administers. */
async function tenantOf(limits = {}): Promise<{ tenant: string; key: Key; admin: Key }> {
  const tenant = `uses-${made++}`;
  const key = await make({ tenant, limits });
  const admin = await make({ tenant, scopes: ["admin"] });
  await setTenant(tenant, { limits: {} });
  return { tenant, key, admin };
}

const get = (path: string, { headers }: Key) => ask(served.url + path, { headers });
const infer = ({ headers }: Key, body: object = simpleBody(1), model = "simple") =>
  ask(`${served.url}/v2/models/${model}/infer`, { body, headers });
const stepOf = (id: number, start: boolean) => ({
  parameters: { sequence_id: id, sequence_start: start },
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }],
});

interface Row {
  readonly [name: string]: unknown;
  readonly requests: number;
}

async function rowsOf(key: Key, query = ""): Promise<readonly Row[]> {
  const { status, body } = await get(`/v2/usage${query}`, key);
  expect([status, body]).toEqual([200, expect.objectContaining({ object: "list" })]);
  return body["data"] as unknown as readonly Row[];
}

describe("usage", () => {
  it("has what each model took of a key, and the sums", async () => {
    const { tenant, key, admin } = await tenantOf();
    for (let i = 0; i < 3; i++) expect((await infer(key)).status).toBe(200);
    for (let i = 0; i < 4; i++) expect((await infer(key, stepOf(made, i === 0), "accumulate")).status).toBe(200);
    const client = new OpenAI({ apiKey: key.text, baseURL: `${served.url}/v1` });
    const { usage } = await client.completions.create({ model: MODEL, prompt: ["a lap", "two"], max_tokens: 5, n: 2 });
    const rows = await readUntil(
      () => rowsOf(admin),
      (found) => found.length === 3,
    );
    const day = new Date().toISOString().slice(0, 10);
    const common = { object: "usage", day, tenant, key: key.id };
    expect(rows.find(({ model }) => model === "simple")).toMatchObject({ ...common, requests: 3, steps: 0 });
    expect(rows.find(({ model }) => model === "accumulate")).toMatchObject({ ...common, requests: 4, steps: 4 });
    expect(rows.find(({ model }) => model === MODEL)).toMatchObject({
      ...common,
      requests: 1,
      tokens_in: usage?.prompt_tokens,
      tokens_out: usage?.completion_tokens,
    });
    for (const { compute_ms, bytes_in, bytes_out } of rows) {
      expect([compute_ms, bytes_in, bytes_out].map((value) => Number(value) > 0)).toEqual([true, true, true]);
    }
    const { body } = await get("/v2/usage", admin);
    expect(body).toMatchObject({ totals: { requests: 8, steps: 4 }, has_more: false, last_tenant: tenant });
    expect(await rowsOf(admin, "?group=model,day")).toHaveLength(3);
    expect(await rowsOf(admin, "?group=key")).toEqual([expect.objectContaining({ key: key.id, requests: 8 })]);
    expect(await rowsOf(admin, "?from=2026-01-01&to=2026-01-02")).toEqual([]);
  });

  it("of jobs belongs to the key that submitted them", async () => {
    const { key, admin } = await tenantOf();
    const path = `${served.url}/v2/models/simple/jobs`;
    expect((await ask(path, { body: { infer: simpleBody(1) }, headers: key.headers })).status).toBe(202);
    const isDone = (rows: readonly Row[]) => Number(rows[0]?.["bytes_out"]) > 0;
    expect(await readUntil(() => rowsOf(admin), isDone)).toMatchObject([{ key: key.id, requests: 1 }]);
  });

  it("of all tenants is for operators, a page after the other", async () => {
    const [one, other] = [await tenantOf(), await tenantOf()];
    await Promise.all([infer(one.key), infer(other.key)]);
    const operator = await make({ scopes: ["operator"] });
    const tenants = (await rowsOf(operator, "?group=day")).map(({ tenant }) => tenant);
    expect(tenants).toEqual(expect.arrayContaining([one.tenant, other.tenant]));
    expect(await rowsOf(operator, `?tenant=${one.tenant}`)).toMatchObject([{ tenant: one.tenant, requests: 1 }]);
    const behind = (await rowsOf(operator, `?after=${one.tenant}`)).map(({ tenant }) => tenant);
    expect([behind.includes(one.tenant), behind.includes(other.tenant)]).toEqual([false, true]);
  });

  it.each([
    ["?from=2026-02-30", "from must be a day such as 2026-11-28, not '2026-02-30'"],
    ["?to=yesterday", "to must be a day such as 2026-11-28, not 'yesterday'"],
    ["?from=2026-01-02&to=2026-01-01", "from must not be after to"],
    ["?from=2025-01-01&to=2026-01-01", "from and to may include 90 days"],
    ["?group=hour", "group must be some of day, model, key, not 'hour'"],
    ["?group=day,day", "group must be some of day, model, key, not 'day,day'"],
    ["?by=day", "unknown query parameter 'by'; there are: from, to, group, tenant, after"],
  ])("refuses %s", async (query, error) => {
    const { admin } = await tenantOf();
    const { status, body } = await get(`/v2/usage${query}`, admin);
    expect([status, body]).toEqual([400, { error, code: "invalid_argument" }]);
  });

  it("of another tenant is not for a tenant's administrator, and no usage for other keys", async () => {
    const [one, other] = [await tenantOf(), await tenantOf()];
    expect((await get(`/v2/usage?tenant=${other.tenant}`, one.admin)).status).toBe(403);
    expect((await get("/v2/usage", one.key)).status).toBe(403);
  });
});

describe("a quota that is used up", () => {
  it("refuses without a time to come again, and OpenAI's client does not try again", async () => {
    const { key, admin } = await tenantOf({ quota: { requests: 1, period: "month" } });
    expect((await infer(key)).status).toBe(200);
    const { status, body, headers } = await infer(key);
    const error = "the quota of requests for this month is used up";
    expect([status, body]).toEqual([429, { error, code: "insufficient_quota", limit: "quota", scope: "key" }]);
    expect([headers.get("retry-after"), headers.get("x-should-retry")]).toEqual([null, "false"]);
    const client = new OpenAI({ apiKey: key.text, baseURL: `${served.url}/v1`, maxRetries: 5 });
    await expect(client.completions.create({ model: MODEL, prompt: "a lap", max_tokens: 2 })).rejects.toMatchObject({
      constructor: RateLimitError,
      code: "insufficient_quota",
      type: "insufficient_quota",
    });
    expect(await rowsOf(admin, "?group=key")).toMatchObject([{ requests: 1, refused: 2 }]);
    const gateway = served.fleet.gateways[0]?.member.process ?? expect.fail("no gateway");
    const { fields } = await gateway.waitForLine(
      "quota_exhausted",
      ({ fields }) => fields["event"] === "quota_exhausted" && fields["key_id"] === key.id,
    );
    expect(fields).toMatchObject({ audit: true, limit: "quota", scope: "key", status: 429 });
  });

  it("of tokens refuses once they are used", async () => {
    const { tenant, key } = await tenantOf();
    await setTenant(tenant, { limits: { quota: { tokens: 3, period: "day" } } });
    const complete = () =>
      ask(`${served.url}/v1/completions`, {
        body: { model: MODEL, prompt: "a lap", max_tokens: 4 },
        headers: key.headers,
      });
    const refused = await readUntil(complete, ({ status }) => status !== 200);
    expect(refused).toMatchObject({
      status: 429,
      body: { error: { message: "the quota of tokens for this day is used up", code: "insufficient_quota" } },
    });
  });
});
