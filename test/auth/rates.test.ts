/**
 * A key and its tenant are admitted as often as their limits say, and every answer says how they
 * stand.
 */
import { OpenAI, RateLimitError } from "openai";
import { describe, expect, it } from "vitest";
import { rawPost } from "../fixtures/requests.js";
import { ask, simpleBody, type Answer } from "../jobs/ask.js";
import { rawExchange } from "../support/gateway/http.js";
import { useKeyedFleet, type Key } from "./keyed.js";

const MODEL = "gen-mha";
/** A generator with a long context. */
const ENDLESS = "gen-cheap";
const fleet = useKeyedFleet({
  models: [MODEL, ENDLESS, "simple", "accumulate"],
  direct: true,
  env: {
    BATON_DEFAULT_LIMITS: '{"requests_per_second": 0.001, "burst": 7}',
    BATON_CALLS_PER_SECOND: "0.001",
    BATON_CALLS_BURST: "5",
  },
});
const { served, make, setTenant } = fleet;

/** So few a second that none comes back during a test. */
const RARE = 0.001;
/** A key of a tenant of its own, which has no limits. */
async function limited(burst: number, tenantLimits: object = { requests_per_second: 100_000 }): Promise<Key> {
  const key = await make({ tenant: `of-${burst}-${made++}`, limits: { requests_per_second: RARE, burst } });
  await setTenant(`of-${burst}-${made - 1}`, { limits: tenantLimits });
  return key;
}
let made = 0;

const infer = ({ headers }: Key, more: Readonly<Record<string, string>> = {}): Promise<Answer> =>
  ask(`${served.url}/v2/models/simple/infer`, { body: simpleBody(1), headers: { ...headers, ...more } });
const statuses = async (answers: readonly Promise<Answer>[]): Promise<number[]> =>
  (await Promise.all(answers)).map(({ status }) => status).sort((a, b) => a - b);
const times = (status: number, count: number): number[] => Array.from({ length: count }, () => status);

describe("a key with a limit", () => {
  it("sends its burst at once, and gets 429 for the rest, with the time to come again", async () => {
    const key = await limited(20);
    const answers = Array.from({ length: 50 }, () => infer(key));
    expect(await statuses(answers)).toEqual([...times(200, 20), ...times(429, 30)]);
    const { status, body, headers } = await infer(key);
    expect([status, body]).toEqual([
      429,
      {
        error: expect.stringMatching(/^Rate limit reached for requests per second: limit 0.001, burst 20. /) as string,
        code: "rate_limit_exceeded",
        limit: "requests_per_second",
        scope: "key",
      },
    ]);
    const waitMs = Number(headers.get("retry-after-ms"));
    expect([waitMs <= 1_000_000, waitMs > 900_000]).toEqual([true, true]);
    expect(headers.get("retry-after")).toBe(String(Math.ceil(waitMs / 1_000)));
    expect(headers.get("x-ratelimit-remaining-requests")).toBe("0");
  });

  it("comes again after the time that a refusal names, to 50 ms by Redis's clock", async () => {
    const key = await make({ tenant: "patient", limits: { requests_per_second: 1, burst: 1 } });
    await setTenant("patient", { limits: { requests_per_second: 100_000 } });
    const nowMs = async (): Promise<number> => {
      const [s, us] = await served.redis.time();
      return Number(s) * 1_000 + Number(us) / 1_000;
    };
    /** Redis has judged the request between these two times. */
    const judged = async () => {
      const from = await nowMs();
      const { status, headers } = await infer(key);
      return { from, status, waitMs: Number(headers.get("retry-after-ms")), to: await nowMs() };
    };
    let last = await judged();
    while (last.status === 200) last = await judged();
    const refusals: (typeof last)[] = [];
    for (; last.status === 429; last = await judged()) refusals.push(last);
    expect(last.status).toBe(200);
    for (const { from, waitMs, to } of refusals) {
      expect(last.to).toBeGreaterThanOrEqual(from + waitMs - 50);
      expect(refusals.at(-1)?.from).toBeLessThanOrEqual(to + waitMs + 50);
    }
  });

  it("is a line of the audit when it refuses, with many of its kind", async () => {
    const key = await limited(1);
    await Promise.all(Array.from({ length: 5 }, () => infer(key)));
    const gateway = served.fleet.gateways[0]?.member.process ?? expect.fail("no gateway");
    const { fields } = await gateway.waitForLine(
      "rate_limited",
      ({ fields }) => fields["event"] === "rate_limited" && fields["key_id"] === key.id,
    );
    expect(fields).toMatchObject({ audit: true, limit: "requests_per_second", scope: "key", status: 429, count: 4 });
  });

  it("counts a completion of several prompts once", async () => {
    const key = await limited(1);
    const prompts = { model: MODEL, prompt: ["a lap", "another", "a third"], max_tokens: 2 };
    const complete = () => ask(`${served.url}/v1/completions`, { body: prompts, headers: key.headers });
    expect([(await complete()).status, (await complete()).status]).toEqual([200, 429]);
  });

  it("reads how much is left in each answer, on every way", async () => {
    const key = await limited(10);
    const left = (headers: { get(name: string): string | null }): unknown[] =>
      ["x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "ratelimit-policy"].map((one) =>
        headers.get(one),
      );
    const policy = '"requests";q=10;w=10000';
    expect(left((await infer(key)).headers)).toEqual(["0", "9", policy]);
    // A header of its own takes node's way, and a body in chunks the framework's.
    expect(left((await infer(key, { "x-other": "1", "accept-encoding": "gzip" })).headers)).toEqual(["0", "8", policy]);
    const port = Number(new URL(served.url).port);
    const head = [`Authorization: ${key.headers.authorization}`];
    const plain = await rawExchange(
      port,
      rawPost("/v2/models/simple/infer", JSON.stringify(simpleBody(1)), head),
      /\}$/,
    );
    expect(plain).toContain("x-ratelimit-remaining-requests: 7");
    const generate = (path: string, body: object) => ask(served.url + path, { body, headers: key.headers });
    const text = { text_input: "a lap", max_tokens: 2 };
    expect(left((await generate(`/v2/models/${MODEL}/generate`, text)).headers)[1]).toBe("6");
    const stream = await fetch(`${served.url}/v2/models/${MODEL}/generate_stream`, {
      method: "POST",
      body: JSON.stringify(text),
      headers: key.headers,
    });
    await stream.text();
    expect(left(stream.headers)[1]).toBe("5");
    const prompt = { model: MODEL, prompt: "a lap", max_tokens: 2 };
    expect(left((await generate("/v1/completions", prompt)).headers)[1]).toBe("4");
    expect(left((await generate("/v2/models/simple/jobs", { infer: simpleBody(1) })).headers)[1]).toBe("3");
    const later = { infer: simpleBody(1), delay: 3_600_000 };
    expect(left((await generate("/v2/models/simple/jobs", later)).headers)[1]).toBe("2");
    // What admits nothing counts nothing.
    expect(left((await ask(`${served.url}/v2/jobs`, { headers: key.headers })).headers)[1]).toBeNull();
    expect(left((await infer(key)).headers)[1]).toBe("1");
  });

  it("is refused in OpenAI's form, and OpenAI's client takes it for a limit", async () => {
    const key = await limited(1);
    const client = new OpenAI({ apiKey: key.text, baseURL: `${served.url}/v1`, maxRetries: 0 });
    const complete = () => client.completions.create({ model: MODEL, prompt: "a lap", max_tokens: 2 });
    expect((await complete()).choices).toHaveLength(1);
    await expect(complete()).rejects.toMatchObject({
      constructor: RateLimitError,
      code: "rate_limit_exceeded",
      type: "requests",
    });
  });

  it("is retried by OpenAI's client after the time that the refusal names", async () => {
    const key = await make({ tenant: "patient", limits: { requests_per_second: 2, burst: 1 } });
    await setTenant("patient", { limits: { requests_per_second: 1_000 } });
    const client = new OpenAI({ apiKey: key.text, baseURL: `${served.url}/v1`, maxRetries: 5 });
    for (let i = 0; i < 3; i++) {
      const { choices } = await client.completions.create({ model: MODEL, prompt: "a lap", max_tokens: 2 });
      expect(choices).toHaveLength(1);
    }
  });

  it("pays for no request that is refused for another reason, and for each repetition under its key", async () => {
    const key = await limited(3);
    const step = {
      parameters: { sequence_id: 99 },
      inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }],
    };
    const refused = await ask(`${served.url}/v2/models/accumulate/infer`, { body: step, headers: key.headers });
    expect([refused.status, refused.body.code]).toEqual([400, "sequence_start_required"]);
    const again = { "idempotency-key": "one" };
    const answers = [];
    for (let i = 0; i < 4; i++) answers.push(await infer(key, again));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
  });

  it("of 0 lets nothing be admitted, and lets its owner read", async () => {
    const key = await make({ tenant: "closed", limits: { requests_per_second: 0 } });
    expect((await infer(key)).status).toBe(429);
    expect((await ask(`${served.url}/v2/jobs`, { headers: key.headers })).status).toBe(200);
  });
});

describe("a limit of generations", () => {
  it("counts those that have not ended, whoever ends them", async () => {
    const key = await make({ tenant: "talker", limits: { concurrent_streams: 2 } });
    await setTenant("talker", { limits: { requests_per_second: 100_000 } });
    // Longer than the test, unless the test ends it.
    const prompt = { text_input: "over and over", max_tokens: 60_000, ignore_eos: true, temperature: 1, seed: 1 };
    const begin = (headers: object = { prefer: "respond-async" }) =>
      ask(`${served.url}/v2/models/${ENDLESS}/generate`, { body: prompt, headers: { ...key.headers, ...headers } });
    const begun = [await begin(), await begin()];
    expect(begun.map(({ status }) => status)).toEqual([202, 202]);
    const refused = await begin();
    expect([refused.status, refused.body]).toEqual([
      429,
      {
        error: "the API key may have 2 generations at a time (concurrent_streams)",
        code: "stream_limit",
        limit: "concurrent_streams",
        scope: "key",
      },
    ]);
    expect((await infer(key)).status).toBe(200);
    const cancel = { method: "DELETE", headers: key.headers };
    expect((await ask(`${served.url}/v2/requests/${begun[0]?.body.id ?? ""}`, cancel)).status).toBe(204);
    const stream = new AbortController();
    const read = await fetch(`${served.url}/v2/models/${ENDLESS}/generate_stream`, {
      method: "POST",
      body: JSON.stringify(prompt),
      headers: key.headers,
      signal: stream.signal,
    });
    expect(read.status).toBe(200);
    expect((await begin()).status).toBe(429);
    // The client leaves, and after the grace no client wants the stream.
    stream.abort();
    let last = refused;
    await expect.poll(async () => (last = await begin()).status, { timeout: 60_000, interval: 250 }).toBe(202);
    for (const { body } of [begun[1] ?? last, last]) await ask(`${served.url}/v2/requests/${body.id}`, cancel);
  });
});

describe("a limit of tokens", () => {
  it("is taken at admission, and given back at the end, whoever ends a generation", async () => {
    const key = await make({ tenant: "writer", limits: { tokens_per_minute: 600 } });
    await setTenant("writer", { limits: { requests_per_second: 100_000 } });
    const generate = (model: string, more: object, headers: object = {}) =>
      ask(`${served.url}/v2/models/${model}/generate`, {
        body: { text_input: "over and over", ignore_eos: true, temperature: 0, ...more },
        headers: { ...key.headers, ...headers },
      });
    const first = await generate(MODEL, { max_tokens: 5 });
    expect([first.status, first.headers.get("x-ratelimit-limit-tokens")]).toEqual([200, "600"]);
    // A quarter of the 13 bytes of the prompt, and 5.
    expect(first.headers.get("x-ratelimit-remaining-tokens")).toBe("591");
    const long = await generate(ENDLESS, { max_tokens: 560 }, { prefer: "respond-async" });
    expect(long.status).toBe(202);
    const openai = new OpenAI({ baseURL: `${served.url}/v1`, apiKey: key.text, maxRetries: 0 });
    const refused = await openai.completions
      .create({ model: MODEL, prompt: "over and over", max_tokens: 500 })
      .catch((error: unknown) => error);
    if (!(refused instanceof RateLimitError)) expect.fail(String(refused));
    expect([refused.type, refused.code]).toEqual(["tokens", "rate_limit_exceeded"]);
    expect(refused.message).toContain("tokens per minute: limit 600");
    const tooMuch = await generate(MODEL, { max_tokens: 600 });
    expect([tooMuch.status, tooMuch.body]).toEqual([
      400,
      {
        error: "the prompt and max_tokens come to 604 tokens, and the API key has 600 (tokens_per_minute)",
        code: "invalid_argument",
      },
    ]);
    expect((await infer(key)).status).toBe(200);
    const cancel = { method: "DELETE", headers: key.headers };
    await ask(`${served.url}/v2/requests/${long.body.id}`, cancel);
    const last = await generate(MODEL, { max_tokens: 5 });
    const left = Number(last.headers.get("x-ratelimit-remaining-tokens"));
    expect([last.status, left > 0, left <= 591]).toEqual([200, true, true]);
  });
});

describe("calls that admit nothing", () => {
  it("have a limit for each key and gateway, and requests are none of them", async () => {
    const key = await make({ tenant: "caller", limits: { requests_per_second: 1_000 } });
    await setTenant("caller", { limits: { requests_per_second: 100_000 } });
    const calls = Array.from({ length: 8 }, () => ask(`${served.url}/v2/jobs`, { headers: key.headers }));
    expect(await statuses(calls)).toEqual([...times(200, 5), ...times(429, 3)]);
    const { body, headers } = await ask(`${served.url}/v2/jobs`, { headers: key.headers });
    expect(body).toMatchObject({ code: "rate_limit_exceeded", limit: "calls_per_second", scope: "key" });
    expect(Number(headers.get("retry-after-ms"))).toBeGreaterThan(900_000);
    expect(await statuses(Array.from({ length: 20 }, () => infer(key)))).toEqual(times(200, 20));
    const job = await ask(`${served.url}/v2/models/simple/jobs`, {
      body: { infer: simpleBody(1) },
      headers: key.headers,
    });
    expect(job.status).toBe(202);
    const other = await make({ tenant: "caller" });
    expect((await ask(`${served.url}/v2/jobs`, { headers: other.headers })).status).toBe(200);
  });
});

describe("a tenant with a limit", () => {
  it("has it for all its keys, and a key's own limit counts beside it", async () => {
    const tenant = "shared";
    await setTenant(tenant, { limits: { requests_per_second: RARE, burst: 6 } });
    const first = await make({ tenant, limits: { requests_per_second: RARE, burst: 4 } });
    const second = await make({ tenant });
    expect(await statuses(Array.from({ length: 10 }, () => infer(first)))).toEqual([
      ...times(200, 4),
      ...times(429, 6),
    ]);
    expect((await infer(first)).body).toMatchObject({ scope: "key" });
    expect(await statuses(Array.from({ length: 10 }, () => infer(second)))).toEqual([
      ...times(200, 2),
      ...times(429, 8),
    ]);
    expect((await infer(second)).body).toMatchObject({ scope: "tenant" });
  });

  it("has the deployment's usual limit if it has none itself", async () => {
    const key = await make({ tenant: "plain" });
    expect(await statuses(Array.from({ length: 9 }, () => infer(key)))).toEqual([...times(200, 7), ...times(429, 2)]);
  });

  it("has a changed limit within seconds", async () => {
    const key = await make({ tenant: "raised" });
    await setTenant("raised", { limits: { requests_per_second: RARE, burst: 1 } });
    await infer(key);
    await setTenant("raised", { limits: { requests_per_second: 1_000, burst: 1_000 } });
    await expect.poll(async () => (await infer(key)).status, { timeout: 5_000 }).toBe(200);
  });
});
