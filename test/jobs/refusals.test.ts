/** A refusal names the fault of a job, in the words of the path that answers at once. */
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { ask, simpleBody, submit } from "./ask.js";

const served = useFleet({ models: ["simple", "gen-mha", "gen-cheap"], env: { BATON_WEBHOOK_ALLOW: "" }, direct: true });

const infer = simpleBody(1);
const generate = { text_input: "Once" };
const HOUR = 3_600_000;
const inFuture = (ms: number) => new Date(Date.now() + ms).toISOString();
const labels = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`l${i}`, "v"]));

const wrong: [what: object | string, words: RegExp][] = [
  [{}, /exactly one of the members infer, generate, chat, completion .* there is none/],
  [{ infer, generate }, /there is infer and generate/],
  ["[]", /root must be an object/],
  ['{"infer":{},"infer":{}}', /Duplicate name of object member/],
  ['{"infer":', /failed to parse/],
  [{ infer, colour: 1 }, /unknown member 'colour'/],
  [{ infer, delay: -1 }, /delay must be a whole number from 0 to 31622400000, got -1/],
  [{ infer, delay: 1.5 }, /delay must be a whole number/],
  [{ infer, delay: "5s" }, /delay must be a whole number/],
  [`{"infer":{},"delay":9223372036854775808}`, /delay must be a whole number/],
  [{ infer, delay: 1, run_at: "2099-01-01T00:00:00Z" }, /delay and run_at are both given/],
  [{ infer, run_at: "2020-01-01T00:00:00Z" }, /run_at must not lie in the past/],
  [{ infer, run_at: "9999-01-01T00:00:00Z" }, /run_at must be at most 31622400000 ms from now/],
  [{ infer, run_at: "2099-02-30T00:00:00Z" }, /run_at must be a time .* with its zone/],
  [{ infer, run_at: 1_790_000_000 }, /run_at must be a time/],
  [{ infer, delay: HOUR, deadline: inFuture(HOUR / 2) }, /deadline must not lie before the job is due/],
  [
    { infer, delay: HOUR, deadline: inFuture(24 * 8 * HOUR) },
    /deadline must be at most .* ms from when the job is due/,
  ],
  [{ infer, backoff: 5 }, /backoff must be an object/],
  [{ infer, backoff: { kind: "fixed" } }, /unknown member 'kind' of backoff/],
  [{ infer, backoff: { type: "linear" } }, /backoff\.type must be exponential or fixed/],
  [{ infer, backoff: { delay: 0 } }, /backoff\.delay must be a whole number/],
  [{ infer, backoff: { max: 1e9 } }, /backoff\.max must be a whole number/],
  [{ infer, backoff: { delay: 10, max: 5 } }, /backoff\.max must be at least backoff\.delay/],
  [{ infer, attempts: 101 }, /attempts must be a whole number from 1 to 100/],
  [{ infer, webhook: "https://example.com" }, /webhook must be an object with url or id/],
  [{ infer, webhook: {} }, /webhook must have either url or id/],
  [{ infer, webhook: { url: "http://127.0.0.1/" } }, /http:\/\/ may lead only to/],
  [{ infer, attempts: 0 }, /attempts must be a whole number/],
  [{ infer, priority: 0 }, /priority must be a whole number from 1 to 9, got 0/],
  [{ infer, priority: 10 }, /priority must be/],
  [{ infer, priority: "1" }, /priority must be/],
  [{ infer, deadline: 0 }, /deadline must be a whole number/],
  [{ infer, deadline: -1 }, /deadline must be/],
  [`{"infer":{},"deadline":9223372036854775808}`, /deadline must be/],
  [{ infer, deadline: "2020-01-01T00:00:00Z" }, /deadline must not lie in the past/],
  [{ infer, deadline: "9999-01-01T00:00:00Z" }, /deadline must be at most/],
  [{ infer, deadline: "2099-02-30T00:00:00Z" }, /with its zone/],
  [{ infer, deadline: "2099-01-01T00:00:00" }, /with its zone/],
  [{ infer, deadline: "tomorrow" }, /with its zone/],
  [{ infer, result_ttl: 999 }, /result_ttl must be/],
  [{ infer, result_ttl: 1e12 }, /result_ttl must be/],
  [{ infer, labels: [] }, /labels must be an object/],
  [{ infer, labels: labels(17) }, /labels has 17 members; the most is 16/],
  [{ infer, labels: { "a b": "c" } }, /labels: a name has/],
  [{ infer, labels: { a: 1 } }, /labels\.a must be a string/],
  [{ infer, labels: { a: "x".repeat(257) } }, /labels\.a must be a string/],
];

const sameWords: [model: string, path: string, member: string, body: object | string][] = [
  ["simple", "/v2/models/simple/infer", "infer", { inputs: [] }],
  [
    "simple",
    "/v2/models/simple/infer",
    "infer",
    { inputs: [{ name: "INPUT0", datatype: "FP32", shape: [1, 16], data: [1] }] },
  ],
  ["simple", "/v2/models/simple/infer", "infer", { ...infer, parameters: { priority: 3 } }],
  ["simple", "/v2/models/simple/infer", "infer", { ...infer, parameters: { timeout: -1 } }],
  ["gen-mha", "/v2/models/gen-mha/generate", "generate", { ...generate, max_tokens: 0 }],
  ["gen-mha", "/v2/models/gen-mha/generate", "generate", { ...generate, nonsense: true }],
  ["nobody", "/v2/models/nobody/infer", "infer", infer],
];

describe("what is wrong with a job", () => {
  it.each(wrong.map(([job, words]) => [String(words), job, words] as const))("%s", async (_, job, words) => {
    const { status, body } = await submit(served.url, "simple", job);
    expect(status).toBe(400);
    expect(body.error).toMatch(words);
  });

  it.each(sameWords)("%s: a body that %s refuses", async (model, path, member, body) => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const [job, sync] = [
      await submit(served.url, model, `{"${member}":${text}}`),
      await ask(`${served.url}${path}`, { body: text }),
    ];
    expect(sync.status).toBeGreaterThanOrEqual(400);
    expect([job.status, job.body]).toEqual([sync.status, sync.body]);
  });

  it("is a body that streams, a model that is not that of the path, or one without chat", async () => {
    const chat = { messages: [{ role: "user", content: "Hi" }] };
    expect((await submit(served.url, "gen-mha", { chat: { ...chat, stream: true } })).body.error).toMatch(
      /stream must be false/,
    );
    expect((await submit(served.url, "gen-mha", { generate: { ...generate, stream: true } })).body.error).toMatch(
      /stream must be/,
    );
    expect((await submit(served.url, "gen-mha", { chat: { ...chat, model: "other" } })).body.error).toMatch(
      /chat\.model must be 'gen-mha'/,
    );
    expect((await submit(served.url, "gen-cheap", { chat })).body.error).toMatch(/does not support chat/);
    expect((await submit(served.url, "gen-mha", { completion: { prompt: ["a", "b"] } })).body.error).toMatch(
      /prompt must be a single one/,
    );
    expect((await submit(served.url, "simple", { chat })).body.error).toMatch(/does not generate text/);
  });

  it("is one that is too large, or comes under a wrong key", async () => {
    const large = { infer, labels: { a: "x".repeat(1_100_000) } };
    expect(await submit(served.url, "simple", large)).toMatchObject({
      status: 413,
      body: { code: "payload_too_large" },
    });
    expect((await submit(served.url, "simple", { infer }, { "idempotency-key": "x".repeat(256) })).status).toBe(400);
  });

  it("is an id that no gateway made", async () => {
    for (const id of ["job_", "job_:", "job_a:b.0.simple", "sched_x", "job_AAAA.0.simple", "..", "job_%00"]) {
      for (const [method, path] of [
        ["GET", ""],
        ["GET", "/result"],
        ["DELETE", ""],
        ["POST", "/retry"],
      ] as const) {
        const { status } = await ask(`${served.url}/v2/jobs/${encodeURIComponent(id)}${path}`, { method });
        expect([id, method, status]).toEqual([id, method, 404]);
      }
    }
  });

  it.each([
    ["limit=0", /limit must be/],
    ["limit=101", /limit must be/],
    ["limit=5&limit=6", /'limit' is given twice/],
    ["state=done", /state must be of/],
    ["label=team", /label must be a name and a value/],
    ["after=job_none", /after must be the id of a job/],
  ])("is a list by %s", async (query, words) => {
    const { status, body } = await ask(`${served.url}/v2/jobs?${query}`);
    expect([status, body.error]).toEqual([400, expect.stringMatching(words)]);
  });

  it("leaves nothing behind", async () => {
    expect((await ask(`${served.url}/v2/jobs`)).body.data).toEqual([]);
  });
});
