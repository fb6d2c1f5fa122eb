/** Jobs and requests that were set aside: submission, options, looks, pages, ends, refusals. */
import { jsonOf, type Recorder } from "../recording/recorder.js";

const SIXTEEN = Array.from({ length: 16 }, (_, i) => i);
export const infer = {
  inputs: ["INPUT0", "INPUT1"].map((name) => ({ name, datatype: "INT32", shape: [1, 16], data: SIXTEEN })),
};
const ENDED = ["completed", "failed", "cancelled", "expired"];
const later = { infer, delay: 86_400_000 };
const PATH = "/v2/models/simple/jobs";

export async function jobs(api: Recorder): Promise<void> {
  await api.get("/v2/jobs");
  await ended(api);
  await refusals(api);
  await delayed(api);
  for (const query of [
    "?state=completed",
    "?state=scheduled,failed",
    "?state=none",
    "?model=simple",
    "?model=absent",
    "?label=team:blue",
    "?label=team",
    "?label=",
    "?schedule=none",
    "?limit=2",
    "?limit=0",
    "?limit=x",
    "?after=none",
    "?other=1",
    "?model=a&model=b",
  ]) {
    await api.get(`/v2/jobs${query}`);
  }
  for (const query of ["", "?limit=1", "?limit=x", "?after=none", "?model=simple", "?other=1"])
    await api.get(`/v2/dead${query}`);
}

async function ended(api: Recorder): Promise<void> {
  const bodies: readonly (readonly [string, object])[] = [
    [PATH, { infer }],
    [PATH, { infer, labels: { team: "blue" }, priority: 2, attempts: 3, result_ttl: 60_000, deadline: 60_000 }],
    ["/v2/models/simple/versions/1/jobs", { infer }],
    ["/v2/models/tale-gpt/jobs", { generate: { text_input: "Once", temperature: 0, max_tokens: 5 } }],
    [
      "/v2/models/tale-gpt/jobs",
      { chat: { messages: [{ role: "user", content: "A cat" }], temperature: 0, max_tokens: 5 } },
    ],
    ["/v2/models/tale-gpt/jobs", { completion: { prompt: "Once", temperature: 0, max_tokens: 5 } }],
    ["/v2/models/picky/jobs", { infer: { inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [13] }] } }],
  ];
  for (const [path, body] of bodies) {
    const accepted = await api.ask({ method: "POST", path, body });
    api.keep(`POST ${path} ${JSON.stringify(body)}`, { ...accepted, body: withoutProgress(accepted.body) });
    const { id } = jsonOf(accepted);
    if (id === undefined) continue;
    const { state } = jsonOf(await api.until(`/v2/jobs/${id}`, (job) => ENDED.includes(job.state)));
    await api.get(`/v2/jobs/${id}/result`);
    await api.delete(`/v2/jobs/${id}`);
    if (state !== "completed") continue;
    await api.post(`/v2/jobs/${id}/retry`);
    await api.as("stranger").get(`/v2/jobs/${id}`);
  }
}

/** A worker may have begun or ended the job before the gateway answers, so those members vary. */
function withoutProgress(body: Buffer): Buffer {
  const view = JSON.parse(body.toString()) as Record<string, unknown>;
  const varying = ["state", "started_at", "ended_at", "result_expires_at", "result", "error", "position", "progress"];
  const kept = Object.entries(view).map(([name, value]) => [name, varying.includes(name) ? "<varies>" : value]);
  return Buffer.from(JSON.stringify(Object.fromEntries(kept)));
}

async function refusals(api: Recorder): Promise<void> {
  for (const more of [
    { unknown: 1 },
    { priority: 0 },
    { priority: 10 },
    { priority: "high" },
    { attempts: 0 },
    { attempts: 1e6 },
    { delay: -1 },
    { delay: 1e15 },
    { run_at: "tomorrow" },
    { run_at: "2099-01-01T00:00:00Z", delay: 1 },
    { deadline: "yesterday" },
    { deadline: -1 },
    { backoff: { type: "fixed", delay: 10, max: 1 } },
    { backoff: { type: "other" } },
    { backoff: 5 },
    { backoff: { extra: 1 } },
    { result_ttl: 1 },
    { labels: { a: 1 } },
    { labels: { "": "x" } },
    { labels: "x" },
    { labels: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`l${i}`, "x"])) },
    { webhook: {} },
    { webhook: { url: "nowhere" } },
    { webhook: { url: "http://10.0.0.1/x" } },
    { webhook: { id: "wh_none" } },
    { webhook: 5 },
    { generate: { text_input: "x" } },
    { infer: { inputs: [] } },
    { infer: 5 },
    { infer: undefined },
  ]) {
    await api.post(PATH, { infer, ...more });
  }
  for (const body of ["", "{", "[]", "null", "{}"]) await api.post(PATH, body);
  await api.post("/v2/models/absent/jobs", { infer });
  await api.post("/v2/models/tale-gpt/jobs", { chat: { messages: [] } });
  await api.post("/v2/models/tale-gpt/jobs", { chat: { messages: [{ role: "user", content: "x" }], stream: true } });
  await api.post("/v2/models/tale-gpt/jobs", { infer });
}

async function delayed(api: Recorder): Promise<void> {
  for (let i = 0; i < 2; i += 1) await api.post(PATH, later, { "idempotency-key": "later" });
  await api.post(PATH, { ...later, priority: 3 }, { "idempotency-key": "later" });
  const { id } = jsonOf(await api.post(PATH, { ...later, labels: { team: "blue" } }));
  const retried = { ...later, attempts: 5, backoff: { type: "fixed", delay: 1_000 } };
  await api.post(PATH, retried);
  await api.get(`/v2/jobs/${id}`);
  await api.get(`/v2/jobs/${id}/result`);
  await api.post(`/v2/jobs/${id}/retry`);
  await api.delete(`/v2/jobs/${id}`);
  await api.delete(`/v2/jobs/${id}`);
  await api.get(`/v2/jobs/${id}`);
  const list = jsonOf(await api.get("/v2/jobs?limit=3"));
  await api.get(`/v2/jobs?limit=3&after=${list.data.at(-1)?.id ?? ""}`);
}
