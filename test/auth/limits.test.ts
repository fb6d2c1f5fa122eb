/** Limits of owners beside requests and generations: batches, and things that stay. */
import { OpenAI, toFile } from "openai";
import { describe, expect, it } from "vitest";
import { fileKeys } from "#shared/queue/keys.js";
import { formOf, upload } from "../files/upload.js";
import { ask, type Body } from "../jobs/ask.js";
import { ended, inferLine } from "../support/batches/batches.js";
import type { WhoAmI } from "../../gateway/service/keys.js";
import { useKeyedFleet, type Key } from "./keyed.js";

/** A generator with a long context. */
const ENDLESS = "gen-cheap";
const fleet = useKeyedFleet({
  jobs: 1,
  models: ["simple", ENDLESS],
  direct: true,
  guarded: true,
  env: {
    BATON_CAPTURE_TTL_MS: "600000",
    BATON_TENANT_FILES: "1",
    BATON_DELAYED_LIMIT: "1",
    BATON_WEBHOOK_ALLOW: "127.0.0.0/8",
  },
});
const { served, make, setTenant } = fleet;
/** Keeps the jobs process away meanwhile, so that batches do not end. */
async function withoutJobs(act: () => Promise<void>): Promise<void> {
  const [jobs] = served.fleet.jobs;
  await jobs?.kill();
  try {
    await act();
  } finally {
    await jobs?.start();
  }
}

/** So few a second that none comes back during a test. */
const RARE = 0.001;
const batchOrder = { endpoint: "/v2/models/simple/infer", completion_window: "24h" };
const fileOf = (lines: number) =>
  toFile(Buffer.from(Array.from({ length: lines }, (_, i) => JSON.stringify(inferLine(i))).join("\n")), "lines.jsonl");
const clientOf = ({ text }: Key) => new OpenAI({ apiKey: text, baseURL: `${served.url}/v1`, maxRetries: 0 });

describe("a batch", () => {
  const left = ({ headers }: { readonly headers: Headers }) => headers.get("x-ratelimit-remaining-requests");

  it("counts when its client makes it, and a refusal leaves nothing of the batch", async () =>
    withoutJobs(async () => {
      const key = await make({ tenant: "batcher", limits: { requests_per_second: RARE, burst: 3 } });
      const client = clientOf(key);
      const { id: file } = await client.files.create({ file: await fileOf(1), purpose: "batch" });
      const order = (more: object = {}, headers: object = {}) =>
        ask(`${served.url}/v1/batches`, {
          body: { ...batchOrder, input_file_id: file, ...more },
          headers: { ...key.headers, ...headers },
        });
      const first = await order();
      expect([first.status, left(first)]).toEqual([200, "2"]);
      const again = { "idempotency-key": "one" };
      expect(left(await order({}, again))).toBe("1");
      // A call that makes no batch costs nothing, and a repetition counts again.
      expect((await order({ input_file_id: "file-none" })).status).toBe(400);
      const mismatch = await order({ completion_window: "2h" }, again);
      expect([mismatch.status, left(mismatch)]).toEqual([422, null]);
      const replayed = await order({}, again);
      expect([replayed.status, left(replayed)]).toEqual([200, "0"]);
      const refused = await order();
      expect([refused.status, refused.body.error]).toMatchObject([
        429,
        { code: "rate_limit_exceeded", type: "requests" },
      ]);
      expect(Number(refused.headers.get("retry-after-ms"))).toBeGreaterThan(900_000);
      const gateway = served.fleet.gateways[0]?.member.process ?? expect.fail("no gateway");
      const { fields } = await gateway.waitForLine(
        "rate_limited",
        ({ fields }) => fields["event"] === "rate_limited" && fields["key_id"] === key.id,
      );
      expect(fields).toMatchObject({ limit: "requests_per_second", scope: "key", method: "POST", path: "/v1/batches" });
      const made = (await client.batches.list()).data.map(({ id }) => id).toSorted();
      expect(made).toHaveLength(2);
      expect(made).toContain(first.body.id);
      // Nothing but the two batches keeps the file.
      const users = await fleet.redis.zrange(fileKeys.users("batcher", file), "0", "-1");
      expect(users.toSorted()).toEqual(made);
    }));
});

describe("whoami", () => {
  it("shows the lower of a key's and a tenant's limits, and what is used", async () => {
    const limits = { requests_per_second: RARE, burst: 5, tokens_per_minute: 60_100, concurrent_streams: 3 };
    const key = await make({ tenant: "asker", limits });
    await setTenant("asker", {
      limits: { requests_per_second: 2 * RARE, burst: 4, concurrent_streams: 2, queued_bytes: 1e6, schedules: 9 },
    });
    const post = (path: string, body: object, headers: object = {}) =>
      ask(served.url + path, { body, headers: { ...key.headers, ...headers } });
    const look = async () => {
      const { status, body } = await ask(`${served.url}/v2/whoami`, { headers: key.headers });
      expect(status).toBe(200);
      return body as unknown as WhoAmI;
    };
    const before = await look();
    expect([before.tenant, before.key?.id]).toEqual(["asker", key.id]);
    expect(before.limits).toEqual({
      requests_per_second: RARE,
      burst: 4,
      tokens_per_minute: 60_100,
      concurrent_streams: 2,
      queued_bytes: 1e6,
      schedules: 9,
    });
    const nothing = { schedules: 0, webhooks: 0, batches: 0, files: 0, file_bytes: 0 };
    expect(before.used).toEqual({
      requests: { remaining: 4, reset: 0 },
      tokens: { remaining: 60_100, reset: 0 },
      concurrent_streams: 0,
      queued_requests: 0,
      queued_bytes: 0,
      live_sequences: 0,
      jobs: 0,
      ...nothing,
    });
    // Longer than the test, unless the test ends it.
    const endless = { text_input: "on", max_tokens: 60_000, ignore_eos: true, temperature: 1, seed: 1 };
    const begun = await post(`/v2/models/${ENDLESS}/generate`, endless, { prefer: "respond-async" });
    expect(begun.status).toBe(202);
    const later = { infer: inferLine(0).body, delay: 3_600_000 };
    expect((await post("/v2/models/simple/jobs", later)).status).toBe(202);
    const schedule = { every: 3_600_000, job: { infer: later.infer } };
    expect((await post("/v2/models/simple/schedules", schedule)).status).toBe(201);
    const { used } = await look();
    // Of the tenant less is left than of the key.
    expect(used).toEqual({
      requests: { remaining: 2, reset: expect.closeTo(1_000_000, -5) as number },
      tokens: { remaining: expect.any(Number) as number, reset: expect.any(Number) as number },
      concurrent_streams: 1,
      queued_requests: 1,
      queued_bytes: expect.any(Number) as number,
      live_sequences: 0,
      jobs: 1,
      ...nothing,
      schedules: 1,
    });
    expect(used.queued_bytes).toBeGreaterThan(0);
    expect(used.tokens?.remaining).toBeLessThan(60_100);
    expect(used.tokens?.reset).toBeGreaterThan(0);
    await ask(`${served.url}/v2/requests/${begun.body.id}`, { method: "DELETE", headers: key.headers });
    await expect.poll(async () => (await look()).used).toMatchObject({ concurrent_streams: 0, queued_requests: 0 });
  });
});

describe("a tenant's own number of things", () => {
  const small = { text: "x".repeat(200), field: "file", name: "a.jsonl" };
  const form = formOf([{ field: "purpose", text: "batch" }, small]);
  const post = (key: Key, path: string, body: object) => ask(served.url + path, { body, headers: key.headers });
  const send = async (key: Key) => {
    const { status, body } = await upload(served.url, form, key.headers);
    return { status, body: body as Body };
  };
  const later = { infer: inferLine(0).body, delay: 3_600_000 };
  const things: Readonly<Record<string, (key: Key) => Promise<{ readonly status: number; readonly body: Body }>>> = {
    jobs: (key) => post(key, "/v2/models/simple/jobs", later),
    schedules: (key) => post(key, "/v2/models/simple/schedules", { every: 3_600_000, job: { infer: later.infer } }),
    webhooks: (key) => post(key, "/v2/webhooks", { url: "http://127.0.0.1:9/", events: ["sequence.expired"] }),
    subscriptions: (key) => post(key, "/v2/subscriptions", {}),
  };
  const codes: Readonly<Record<string, string>> = { jobs: "tenant_limit" };

  it.each(Object.keys(things))("bounds its %s, and the refusal names it", async (limit) => {
    const key = await make({ tenant: `few-${limit}` });
    await setTenant(`few-${limit}`, { limits: { [limit]: 2 } });
    const ask = things[limit] ?? expect.fail(limit);
    for (let i = 0; i < 2; i++) expect([200, 201, 202]).toContain((await ask(key)).status);
    const { status, body } = await ask(key);
    const code = codes[limit] ?? `${limit.slice(0, -1)}_limit`;
    expect([status, body]).toMatchObject([429, { code, limit, scope: "tenant" }]);
    expect((await ask(await make({ tenant: `other-${limit}` }))).status).toBeLessThan(300);
  });

  it("bounds its files and their bytes, in place of the setting", async () => {
    const [usual, own, tight] = [
      await make({ tenant: "usual" }),
      await make({ tenant: "own" }),
      await make({ tenant: "tight" }),
    ];
    await setTenant("own", { limits: { files: 2 } });
    await setTenant("tight", { limits: { files: 10, file_bytes: 300 } });
    const refused = { error: { code: "file_limit", type: "rate_limit_error" } };
    expect([(await send(usual)).status, (await send(usual)).body]).toMatchObject([200, refused]);
    expect([(await send(own)).status, (await send(own)).status]).toEqual([200, 200]);
    expect((await send(own)).body).toMatchObject(refused);
    expect([(await send(tight)).status, (await send(tight)).body]).toMatchObject([200, refused]);
  });

  it("bounds its batches that have not ended, of which 0 forbids all", async () => {
    const key = await make({ tenant: "unbatched" });
    await setTenant("unbatched", { limits: { batches: 0 } });
    const { id } = await clientOf(key).files.create({ file: await fileOf(1), purpose: "batch" });
    const { status, body } = await post(key, "/v1/batches", { ...batchOrder, input_file_id: id });
    expect([status, body]).toMatchObject([429, { error: { code: "batch_limit", type: "rate_limit_error" } }]);
  });

  it("bounds the files that its batches make", async () => {
    const key = await make({ tenant: "bounded" });
    await setTenant("bounded", { limits: { files: 10, file_bytes: 5_000 } });
    const client = clientOf(key);
    const { id } = await client.files.create({ file: await fileOf(10), purpose: "batch" });
    const made = await post(key, "/v1/batches", { ...batchOrder, input_file_id: id });
    const batch = await ended(client, made.body.id);
    const message = expect.stringContaining("limit of 5000 bytes") as string;
    expect(batch).toMatchObject({ status: "failed", errors: { data: [{ code: "file_limit", message }] } });
  });
});
