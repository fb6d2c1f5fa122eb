/**
 * The run of a job, of a time of a schedule and of a line of a batch leaves a trace of its own,
 * with a link to the submission. A job's messages name the submission.
 */
import { afterAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { useFleet } from "../support/fleet/use-fleet.js";
import { useReceiver } from "../support/jobs/use-receiver.js";
import { TraceReceiver, type ReceivedSpan } from "../support/traces/receiver.js";
import { clientsTrace, named, pathsOf } from "../support/traces/spans.js";
import { readUntil } from "../support/until.js";

const receiver = await TraceReceiver.start();
afterAll(() => receiver.leave());

const SUBMISSION = "POST /v2/models/{model}/jobs";

describe("a fleet with a receiver of traces and a jobs process", () => {
  const served = useFleet({
    models: ["simple", "gen-mha"],
    jobs: 1,
    direct: true,
    env: { BATON_TRACE_URL: receiver.url, BATON_TRACE_SAMPLE: "0", BATON_SECRETS_KEY: "ab".repeat(32) },
  });
  const receiving = useReceiver(served);

  const tensors = ["INPUT0", "INPUT1"].map((name) => ({
    name,
    datatype: "INT32",
    shape: [1, 16],
    data: Array(16).fill(1),
  }));

  async function submit(headers: Readonly<Record<string, string>>, more: object = {}, model = "simple") {
    const request =
      model === "simple" ? { infer: { inputs: tensors } } : { generate: { text_input: "hello", max_tokens: 3 } };
    const body = { ...request, ...more };
    const url = `${served.url}/v2/models/${model}/jobs`;
    const answer = await fetch(url, { method: "POST", body: JSON.stringify(body), headers });
    expect(answer.status).toBe(202);
    return { traceresponse: answer.headers.get("traceresponse"), job: (await answer.json()) as Job };
  }

  async function submissionOf(traceId: string, name = SUBMISSION): Promise<ReceivedSpan> {
    const spans = await receiver.whole(traceId, [name]);
    expect(pathsOf(spans)).toEqual([name]);
    return named(spans, name);
  }

  /** The traces of the runs of a job, without their batches. */
  async function runOf({ traceId, spanId }: ReceivedSpan, names: readonly string[]): Promise<ReceivedSpan[]> {
    const linked = () => receiver.spans.filter(({ links }) => links.some((link) => link.spanId === spanId));
    const [admit] = await readUntil(
      async () => linked(),
      (found) => found.length > 0,
    );
    expect(admit).toMatchObject({ name: "admit", parentSpanId: "", links: [{ traceId, spanId }] });
    return receiver.whole(admit?.traceId ?? "", names);
  }

  /** The admissions of so many runs, each in a trace of its own. */
  async function runsOf({ traceId, spanId }: ReceivedSpan, count: number): Promise<ReceivedSpan[]> {
    const linked = async () => receiver.spans.filter(({ links }) => links.some((link) => link.spanId === spanId));
    const admits = await readUntil(linked, (found) => found.length >= count, { patienceMs: 20_000 });
    for (const admit of admits) {
      expect(admit).toMatchObject({ name: "admit", parentSpanId: "", links: [{ traceId, spanId }] });
      expect(admit.resource).toMatchObject({ "baton.role": "jobs" });
    }
    expect(new Set([traceId, ...admits.map((admit) => admit.traceId)]).size).toBe(count + 1);
    return admits;
  }

  const ended = async ({ id }: Job) => {
    const read = async () => (await (await fetch(`${served.url}/v2/jobs/${id}`)).json()) as Job;
    return readUntil(read, ({ state }) => state === "completed");
  };

  async function register(path: string): Promise<void> {
    const webhook = { url: receiving.receiver.url(path), events: ["job.completed"] };
    expect((await receiving.client.ask("POST", "/webhooks", webhook)).status).toBe(201);
  }

  it("traces the run of a job that was queued at once", async () => {
    const { traceId, spanId, headers } = clientsTrace();
    const { traceresponse, job } = await submit(headers);
    const submission = await submissionOf(traceId);
    expect(submission).toMatchObject({ parentSpanId: spanId, kind: 2 });
    expect(submission.attributes).toMatchObject({ "baton.protocol": "jobs", "http.response.status_code": 202 });
    expect(traceresponse).toBe(`00-${traceId}-${submission.spanId}-01`);
    const run = await runOf(submission, ["admit", "queue", "process", "run", "commit"]);
    expect(pathsOf(run)).toEqual([
      "admit",
      "admit > process",
      "admit > process > commit",
      "admit > process > run",
      "admit > queue",
    ]);
    expect(run.every((span) => span.traceId !== traceId)).toBe(true);
    expect(named(run, "admit").resource).toMatchObject({ "baton.role": "gateway" });
    expect((await ended(job)).request_id).toBe(named(run, "process").attributes["baton.request"]);
  });

  it("traces the run of a delayed job, which the jobs process admits, and its message", async () => {
    const { traceId, headers } = clientsTrace();
    await register("/traced");
    const { job } = await submit(headers, { delay: 300 });
    const submission = await submissionOf(traceId);
    const run = await runOf(submission, ["admit", "queue", "process", "run", "commit"]);
    expect(named(run, "admit").resource).toMatchObject({ "baton.role": "jobs" });
    expect(named(run, "admit").attributes).toMatchObject({
      "baton.admission.said": "admitted",
      "baton.model": "simple",
    });
    await ended(job);
    const messages = await readUntil(
      async () => receiving.receiver.at("/traced"),
      (found) => found.length > 0,
    );
    expect(messages).not.toEqual([]);
    expect(messages.map(({ headers: sent }) => sent["traceparent"])).toEqual(
      messages.map(() => `00-${traceId}-${submission.spanId}-01`),
    );
  });

  it("sends no traceparent for a job whose submission is not sampled", async () => {
    await register("/plain");
    const { traceresponse, job } = await submit({});
    expect(traceresponse).toBeNull();
    await ended(job);
    const [message] = await readUntil(
      async () => receiving.receiver.at("/plain"),
      (found) => found.length > 0,
    );
    expect(message?.headers).not.toHaveProperty("traceparent");
  });

  it("traces the run of each time of a schedule", async () => {
    const { traceId, headers } = clientsTrace();
    const body = JSON.stringify({ every: 1_000, limit: 2, job: { infer: { inputs: tensors } } });
    const made = await fetch(`${served.url}/v2/models/simple/schedules`, { method: "POST", body, headers });
    expect([made.status, (await made.text()).includes(traceId)]).toEqual([201, false]);
    const submission = await submissionOf(traceId, "POST /v2/models/{model}/schedules");
    for (const run of await runsOf(submission, 2)) {
      const spans = await receiver.whole(run.traceId, ["admit", "queue", "process", "run", "commit"]);
      expect(pathsOf(spans)).toContain("admit > process > run");
    }
  });

  it("traces the run of each line of a batch", async () => {
    const line = (n: number) => ({
      custom_id: `line-${n}`,
      method: "POST",
      url: "/v2/models/simple/infer",
      body: { inputs: tensors },
    });
    const chat = { method: "POST", url: "/v1/chat/completions" };
    const say = { model: "gen-mha", messages: [{ role: "user", content: "hello" }], max_tokens: 2 };
    const batch = async (endpoint: string, lines: readonly object[], headers: Readonly<Record<string, string>>) => {
      const form = new FormData();
      form.set("purpose", "batch");
      form.set("file", new Blob([lines.map((one) => JSON.stringify(one)).join("\n")]), "lines.jsonl");
      const { id } = (await (await fetch(`${served.url}/v1/files`, { method: "POST", body: form })).json()) as Job;
      const body = JSON.stringify({ input_file_id: id, endpoint, completion_window: "24h" });
      const json = { ...headers, "content-type": "application/json" };
      const made = await fetch(`${served.url}/v1/batches`, { method: "POST", body, headers: json });
      expect(made.status).toBe(200);
    };
    const [tensorsTrace, textTrace] = [clientsTrace(), clientsTrace()];
    await batch("/v2/models/simple/infer", [line(1), line(2), line(3)], tensorsTrace.headers);
    await batch("/v1/chat/completions", [{ ...chat, custom_id: "a", body: say }], textTrace.headers);
    for (const [trace, lines, last] of [
      [tensorsTrace, 3, "run"],
      [textTrace, 1, "decode"],
    ] as const) {
      const submission = await submissionOf(trace.traceId, "POST /v1/batches");
      expect(submission.attributes).toMatchObject({ "baton.protocol": "openai" });
      for (const run of await runsOf(submission, lines)) {
        const spans = await receiver.whole(run.traceId, ["admit", "queue", "process", last, "commit"]);
        expect(pathsOf(spans)).toContain(`admit > process > ${last}`);
      }
    }
  });

  it("takes a repeated submission with another traceparent for the same job", async () => {
    const key = { "idempotency-key": "one job" };
    const first = await submit({ ...clientsTrace().headers, ...key });
    const again = await submit({ ...clientsTrace().headers, ...key });
    expect(again.job.id).toBe(first.job.id);
  });

  it("links a reader of the job's stream to the run", async () => {
    const { traceId, headers } = clientsTrace();
    const { job } = await submit(headers, {}, "gen-mha");
    const run = await runOf(await submissionOf(traceId), ["admit", "queue", "process", "prefill", "decode", "commit"]);
    const { request_id: id } = await ended(job);
    const reader = clientsTrace();
    const socket = new WebSocket(`${served.url.replace("http", "ws")}/v2/requests/${id}/ws?after=0`, {
      headers: reader.headers,
    });
    await new Promise((resolve) => socket.once("close", resolve));
    const route = "GET /v2/requests/{id}/ws";
    const spans = await receiver.whole(reader.traceId, [route, "relay"]);
    expect(pathsOf(spans)).toEqual([route, `${route} > relay`]);
    const { traceId: ofRun, spanId } = named(run, "admit");
    expect(named(spans, route)).toMatchObject({ parentSpanId: reader.spanId, links: [{ traceId: ofRun, spanId }] });
  });
});

interface Job {
  readonly id: string;
  readonly state: string;
  readonly request_id: string | null;
}
