/**
 * While Redis is full, requests that need room are refused in words, and running work ends. All
 * other work continues once there is room: jobs that wait for their time, due schedules, messages
 * on their way and a batch.
 */
import OpenAI, { toFile } from "openai";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { accepted, ask, ended, simpleBody, type Body } from "../../jobs/ask.js";
import { ended as endedBatch, inferLine, linesOf } from "../../support/batches/batches.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { Receiver, WebhookClient } from "../../support/jobs/webhooks.js";
import { until } from "../../support/until.js";
import { find } from "../../schedules/ask.js";
import { pause } from "../pace.js";

const full = process.env["BATON_FULL"] === "1";
/** Half of the jobs are delayed by this many ms, so most of them become due while Redis is full. */
const DELAY_MS = 2_500;
const LINES = full ? 20_000 : 1_000;
const JOBS = full ? 500 : 40;
/** For how long Redis stays full after all delayed work is due. */
const FULL_MS = full ? 90_000 : 1_500;
const TIMEOUT_MS = 300_000;
const endpoint = "/v2/models/simple/infer" as "/v1/completions";

const served = useFleet({ jobs: 1, models: ["simple"] });

describe("a Redis that is full", () => {
  let receiver: Receiver;
  let openai: OpenAI;
  beforeAll(async () => {
    receiver = await Receiver.start();
    openai = new OpenAI({ baseURL: `${served.url}/v1`, apiKey: "none", maxRetries: 0 });
  });
  afterAll(async () => {
    await receiver.dispose();
  });
  afterEach(free);

  const readiness = async () => (await fetch(`${served.url}/v2/health/ready`)).status;
  async function fill(): Promise<void> {
    await served.redis.setrange("ballast", (16 << 20) - 1, "x");
    const used = Number(/used_memory:(\d+)/.exec(await served.redis.info("memory"))?.[1]);
    await served.redis.config("SET", "maxmemory", String(used - (8 << 20)));
    await expect.poll(readiness).toBe(400);
  }
  async function free(): Promise<void> {
    await served.redis.config("SET", "maxmemory", "0");
    await served.redis.del("ballast");
    await expect.poll(readiness).toBe(200);
  }
  const upload = async (name: string, lines: number) => {
    const text = Array.from({ length: lines }, (_, i) => JSON.stringify(inferLine(i))).join("\n");
    return openai.files.create({ file: await toFile(Buffer.from(text), name), purpose: "batch" });
  };

  it("loses nothing of jobs, schedules, webhooks, batches and files", { timeout: TIMEOUT_MS }, async () => {
    const { url, fleet } = served;
    const events = ["job.completed", "batch.completed"];
    const webhook = await new WebhookClient(url).ask<{ id: string }>("POST", "/webhooks", {
      url: receiver.url("/all"),
      events,
    });
    expect(webhook.status).toBe(201);
    const file = await upload("lines.jsonl", LINES);
    const small = await upload("small.jsonl", 3);
    const batch = await openai.batches.create({ input_file_id: file.id, endpoint, completion_window: "24h" });
    const submit = (i: number, options: object) => accepted(url, "simple", { infer: simpleBody(i), ...options });
    const jobs: Body[] = [];
    for (let i = 0; i < JOBS; i++) jobs.push(await submit(i, i % 2 === 0 ? { delay: DELAY_MS } : { attempts: 3 }));
    const cancelled = await submit(0, { delay: 3_600_000 });
    const schedule = await ask(`${url}/v2/models/simple/schedules`, {
      body: { every: 1_000, job: { infer: simpleBody(7) } },
    });
    const other = await ask(`${url}/v2/models/simple/schedules`, {
      body: { every: 3_600_000, job: { infer: simpleBody(7) } },
    });
    expect([schedule.status, other.status]).toEqual([201, 201]);
    await until(async () => ((await openai.batches.retrieve(batch.id)).request_counts?.completed ?? 0) > 0);
    await fill();

    // Requests that need room are refused, in the form of their path.
    const job = { infer: simpleBody(1) };
    for (const [path, body] of [
      ["/v2/models/simple/jobs", job],
      ["/v2/models/simple/jobs", { ...job, delay: 60_000 }],
      ["/v2/models/simple/schedules", { every: 60_000, job }],
      ["/v2/webhooks", { url: receiver.url("/other"), events }],
    ] as const) {
      const refused = await ask(`${url}${path}`, { body });
      expect([path, refused.status, refused.body.code]).toEqual([path, 503, "unavailable"]);
      expect(refused.headers.get("retry-after")).toBe("1");
    }
    const refusal = { status: 503, error: { code: "unavailable", type: "server_error" } };
    await expect(upload("refused.jsonl", 3)).rejects.toMatchObject(refusal);
    const window = { endpoint, completion_window: "24h" } as const;
    await expect(openai.batches.create({ input_file_id: small.id, ...window })).rejects.toMatchObject(refusal);
    // Existing records can be read.
    for (const path of [
      `/v2/jobs?limit=5`,
      `/v2/jobs/${jobs[0]?.id}`,
      `/v2/schedules`,
      `/v2/webhooks`,
      `/v2/deliveries`,
      `/v1/batches/${batch.id}`,
      `/v1/files/${small.id}/content`,
      `/v2/fleet`,
    ]) {
      const answer = await fetch(url + path);
      await answer.arrayBuffer();
      expect([path, answer.status]).toEqual([path, 200]);
    }
    // Requests that free room succeed.
    for (const [method, path, status] of [
      ["DELETE", `/v2/jobs/${cancelled.id}`, 200],
      ["POST", `/v2/schedules/${other.body.id}/pause`, 200],
      ["DELETE", `/v2/schedules/${other.body.id}`, 204],
      ["DELETE", `/v1/files/${small.id}`, 200],
    ] as const) {
      const answer = await fetch(url + path, { method });
      await answer.arrayBuffer();
      expect([method, path, answer.status]).toEqual([method, path, status]);
    }
    await pause(DELAY_MS + FULL_MS); // by then all delayed jobs became due in a full Redis
    await free();

    const ends = await Promise.all(jobs.map(({ id }) => ended(url, id)));
    expect(ends.map(({ state }) => state)).toEqual(jobs.map(() => "completed"));
    expect(ends.map(({ result }) => result?.outputs?.[0]?.data[0])).toEqual(jobs.map((_, i) => 2 * i));
    expect(new Set(ends.map((one) => one.attempts_made))).toEqual(new Set([1]));
    expect((await ask(`${url}/v2/jobs/${cancelled.id}`)).body.state).toBe("cancelled");
    const over = await endedBatch(openai, batch.id, 120_000);
    expect(over).toMatchObject({ status: "completed", request_counts: { completed: LINES, failed: 0 } });
    const lines = linesOf(await (await openai.files.content(over.output_file_id ?? "")).text());
    expect(new Set(lines.map((line) => line.custom_id)).size).toBe(LINES);
    expect(lines).toHaveLength(LINES);
    const told = () => receiver.at("/all").map((one) => (JSON.parse(one.body) as { data: { id: string } }).data.id);
    const wanted = [...ends.map(({ id }) => id), batch.id];
    await until(() => wanted.every((id) => told().includes(id)), 120_000);
    const runs = async () => (await find(url, schedule.body.id)).runs;
    const before = await runs();
    await until(async () => (await runs()) > before);
    expect((await upload("taken.jsonl", 3)).status).toBe("processed");
    for (const { unasked } of [...fleet.jobs, ...fleet.workers, ...fleet.gateways.map(({ member }) => member)]) {
      expect(unasked).toEqual([]);
    }
  });
});
