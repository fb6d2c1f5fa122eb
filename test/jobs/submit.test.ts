/**
 * A client submits one job to a fleet of real processes: the job is queued at once, and has the
 * same result as the path that answers at once.
 */
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { accepted, ask, ended, simpleBody, submit } from "./ask.js";

const served = useFleet({ gateways: 2, models: ["simple", "gen-mha"], direct: true });
const other = () => served.fleet.urls[1] ?? "";
const sync = (path: string, body: object) => ask(`${served.url}${path}`, { body });

describe("a job for a tensor model", () => {
  it("is accepted with its place, runs, and answers what the path that waits answers", async () => {
    const { status, headers, body } = await submit(served.url, "simple", { infer: simpleBody(3), labels: { a: "b" } });
    expect(status).toBe(202);
    expect(headers.get("location")).toBe(`/v2/jobs/${body.id}`);
    expect(body.id).toMatch(/^job_[\w-]{22}\.\d+\.simple$/);
    expect(body).toMatchObject({ object: "job", type: "infer", model: "simple", priority: 5, labels: { a: "b" } });
    const view = await ended(other(), body.id);
    const { body: answer } = await sync("/v2/models/simple/infer", simpleBody(3));
    expect(view).toMatchObject({ state: "completed", version: "1", attempts: 1, attempts_made: 1, error: null });
    expect(view.result).toEqual(answer);
    const times = [view.created_at, view.queued_at, view.started_at, view.ended_at].map((time) =>
      Date.parse(time ?? ""),
    );
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(Date.parse(view.result_expires_at ?? "")).toBe(Date.parse(view.ended_at ?? "") + 3_600_000);
    const fetched = await ask(`${other()}/v2/jobs/${body.id}/result`);
    expect(fetched).toMatchObject({ status: 200, body: answer });
    const request = await ask(`${other()}/v2/requests/${view.request_id}`);
    expect(request.status).toBe(200);
  });

  it("takes a version, and flat JSON", async () => {
    const { status, body } = await ask(`${served.url}/v2/models/simple/versions/1/jobs`, {
      body: { generate: { INPUT0: Array(16).fill(2), INPUT1: Array(16).fill(1) } },
    });
    expect(status).toBe(202);
    const view = await ended(served.url, body.id);
    const flat = { INPUT0: Array(16).fill(2), INPUT1: Array(16).fill(1) };
    expect(view.result).toEqual((await sync("/v2/models/simple/generate", flat)).body);
  });

  it("gives bytes where they were asked for, which the view does not repeat", async () => {
    const infer = { ...simpleBody(5), outputs: [{ name: "OUTPUT0", parameters: { binary_data: true } }] };
    const { body } = await submit(served.url, "simple", { infer });
    expect(await ended(served.url, body.id)).toMatchObject({ state: "completed", result: null });
    const result = await fetch(`${served.url}/v2/jobs/${body.id}/result`);
    const bytes = Buffer.from(await result.arrayBuffer());
    const head = Number(result.headers.get("inference-header-content-length"));
    expect(bytes.readInt32LE(head)).toBe(10);
  });
});

describe("a job for a generator", () => {
  const generate = { text_input: "Once", max_tokens: 8, temperature: 0 };
  const chat = { messages: [{ role: "user", content: "Hi" }], max_tokens: 5, temperature: 0 };

  it("answers its text in each of the forms", async () => {
    const prompt = { prompt: "Once", max_tokens: 6, temperature: 0, echo: true };
    const infer = {
      inputs: [{ name: "text_input", datatype: "BYTES", shape: [1], data: ["Once"] }],
      parameters: { max_tokens: 4, temperature: 0, exclude_input_in_output: false },
    };
    const jobs = [{ generate }, { chat }, { completion: prompt }, { infer }];
    const ids = await Promise.all(jobs.map(async (job) => (await accepted(served.url, "gen-mha", job)).id));
    const views = await Promise.all(ids.map((id) => ended(other(), id)));
    const answers = [
      await sync("/v2/models/gen-mha/generate", generate),
      await sync("/v1/chat/completions", { ...chat, model: "gen-mha" }),
      await sync("/v1/completions", { ...prompt, model: "gen-mha" }),
      await sync("/v2/models/gen-mha/infer", infer),
    ];
    const bare = (one: unknown): unknown => ({ ...(one as object), id: "", created: 0 });
    expect(views.map(({ result }) => bare(result))).toEqual(answers.map(({ body }) => bare(body)));
    expect(views.map(({ progress }) => progress?.max_tokens)).toEqual([8, 5, 6, 4]);
    expect(views.map(({ progress }) => progress?.tokens)).toEqual([8, 5, 6, 4]);
    for (const { started_at, ended_at } of views) expect([started_at, ended_at]).not.toContain(null);
  });
});

describe("a job under an Idempotency-Key", () => {
  it("is the same job at every gateway, and another body or option is refused", async () => {
    const headers = { "idempotency-key": randomUUID() };
    const deadline = new Date(Date.now() + 600_000).toISOString();
    const job = { infer: simpleBody(1), deadline };
    const tries = await Promise.all(
      [served.url, other(), served.url, other()].map((url) => submit(url, "simple", job, headers)),
    );
    expect(new Set(tries.map(({ body }) => body.id)).size).toBe(1);
    expect(tries.map(({ status }) => status)).toEqual([202, 202, 202, 202]);
    expect(tries.filter((one) => one.headers.get("idempotent-replayed") === "true")).toHaveLength(3);
    await ended(served.url, tries[0]?.body.id ?? "");
    const late = await submit(other(), "simple", job, headers);
    expect(late.body).toMatchObject({ id: tries[0]?.body.id, state: "completed" });
    for (const another of [
      { ...job, infer: simpleBody(2) },
      { ...job, infer: { ...simpleBody(1), parameters: { timeout: 9_000_000 } } },
      { ...job, priority: 2 },
      { ...job, labels: { x: "y" } },
    ]) {
      expect(await submit(other(), "simple", another, headers)).toMatchObject({
        status: 422,
        body: { code: "idempotency_mismatch" },
      });
    }
    // The same key means another request if the client waits for the answer.
    const waited = await ask(`${served.url}/v2/models/simple/infer`, { body: simpleBody(9), headers });
    expect(waited.status).toBe(200);
  });
});
