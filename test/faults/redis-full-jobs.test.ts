/**
 * A Redis that is full while jobs wait for their time, schedules are due, messages are on their way
 * and a batch runs: what would need room is refused in words, what can end ends, and all the rest
 * goes on once there is room.
 */
import OpenAI, { toFile } from "openai";
import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { accepted, ask, ended, simpleBody, type Body } from "../jobs/ask.js";
import { ended as endedBatch, inferLine, linesOf } from "../support/batches/batches.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { Receiver, WebhookClient } from "../support/jobs/webhooks.js";
import { until } from "../support/until.js";
import { pause } from "./pace.js";

const full = process.env["BATON_FULL"] === "1";
const LINES = full ? 20_000 : 2_000;
const JOBS = full ? 500 : 40;
/** For how long Redis is full, once all that was told to happen meanwhile is due. */
const FULL_MS = full ? 90_000 : 6_000;
const TIMEOUT_MS = 300_000;
const endpoint = "/v2/models/simple/infer" as "/v1/completions";

const served = useFleet({
  gateways: 1,
  workers: 1,
  jobs: 1,
  models: ["simple"],
  env: { BATON_WEBHOOK_ALLOW: "127.0.0.0/8" },
});

describe("a Redis that is full", () => {
  let redis: Redis;
  let receiver: Receiver;
  let openai: OpenAI;
  beforeAll(async () => {
    redis = served.fleet.redis.connect();
    receiver = await Receiver.start();
    openai = new OpenAI({ baseURL: `${served.url}/v1`, apiKey: "none", maxRetries: 0 });
  });
  afterAll(async () => {
    redis.disconnect();
    await receiver.dispose();
  });
  afterEach(free);

  const readiness = async () => (await fetch(`${served.url}/v2/health/ready`)).status;
  async function fill(): Promise<void> {
    await redis.setrange("ballast", (16 << 20) - 1, "x");
    const used = Number(/used_memory:(\d+)/.exec(await redis.info("memory"))?.[1]);
    await redis.config("SET", "maxmemory", String(used - (8 << 20)));
    await expect.poll(readiness).toBe(400);
  }
  async function free(): Promise<void> {
    await redis.config("SET", "maxmemory", "0");
    await redis.del("ballast");
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
    const runAt = new Date(Date.now() + 3_000).toISOString();
    const submit = (i: number, options: object) => accepted(url, "simple", { infer: simpleBody(i), ...options });
    const jobs: Body[] = [];
    for (let i = 0; i < JOBS; i++) jobs.push(await submit(i, i % 2 === 0 ? { run_at: runAt } : { attempts: 3 }));
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

    // What needs room is refused, in the shape of its path.
    const job = { infer: simpleBody(1) };
    const made: [string, object][] = [
      [`/v2/models/simple/jobs`, job],
      [`/v2/models/simple/jobs`, { ...job, delay: 60_000 }],
      [`/v2/models/simple/schedules`, { every: 60_000, job }],
      [`/v2/webhooks`, { url: receiver.url("/other"), events }],
    ];
    const said: unknown[] = [];
    for (const [path, body] of made) {
      const { status, text, headers } = await ask(`${url}${path}`, { body });
      said.push([path, status, headers.get("retry-after"), text]);
    }
    for (const act of [
      () => upload("refused.jsonl", 3),
      () => openai.batches.create({ input_file_id: small.id, endpoint, completion_window: "24h" }),
    ]) {
      await act().then(
        (got) => said.push(["accepted", got]),
        (error: unknown) => said.push(error instanceof OpenAI.APIError ? [error.status, error.error] : String(error)),
      );
    }
    console.log("refused", JSON.stringify(said, null, 1));
    // What is there can be looked at.
    const seen: unknown[] = [];
    for (const path of [
      `/v2/jobs?limit=5`,
      `/v2/jobs/${jobs[0]?.id}`,
      `/v2/schedules`,
      `/v2/webhooks`,
      `/v2/deliveries`,
      `/v2/deliveries?state=pending`,
      `/v1/batches`,
      `/v1/batches/${batch.id}`,
      `/v1/files`,
      `/v1/files/${small.id}/content`,
      `/v2/fleet`,
    ]) {
      const answer = await fetch(url + path);
      seen.push([path, answer.status, (await answer.text()).slice(0, 100)]);
    }
    console.log("seen", JSON.stringify(seen, null, 1));
    // What frees room is done.
    const freed: unknown[] = [];
    for (const [path, method] of [
      [`/v2/jobs/${cancelled.id}`, "DELETE"],
      [`/v2/schedules/${other.body.id}/pause`, "POST"],
      [`/v2/schedules/${other.body.id}`, "DELETE"],
      [`/v1/files/${small.id}`, "DELETE"],
      [`/v2/requests/${jobs[1]?.request_id}`, "DELETE"],
    ] as const) {
      const answer = await fetch(url + path, { method });
      freed.push([path, method, answer.status, (await answer.text()).slice(0, 200)]);
    }
    console.log("freed", JSON.stringify(freed, null, 1));
    await pause(Math.max(0, Date.parse(runAt) - Date.now()) + FULL_MS);
    const counts = (await openai.batches.retrieve(batch.id)).request_counts;
    console.log("counts", counts, receiver.received.length);
    await free();

    const from = performance.now();
    const ends = await Promise.all(jobs.map(({ id }) => ended(url, id)));
    console.log("jobs ended after", performance.now() - from, new Set(ends.map(({ state }) => state)));
    const over = await endedBatch(openai, batch.id, 120_000);
    console.log("batch ended after", performance.now() - from, over.status, over.request_counts);
    const lines = linesOf(await (await openai.files.content(over.output_file_id ?? "")).text());
    expect(new Set(lines.map((line) => line.custom_id)).size).toBe(LINES);
    expect(lines).toHaveLength(LINES);
    const told = () => receiver.at("/all").map((one) => (JSON.parse(one.body) as { data: { id: string } }).data.id);
    const wanted = [...ends.filter(({ state }) => state === "completed").map(({ id }) => id), batch.id];
    await until(() => wanted.every((id) => told().includes(id)), 120_000);
    console.log("told after", performance.now() - from);
    const runs = async () => (await ask(`${url}/v2/schedules/${schedule.body.id}`)).text;
    console.log("schedule", await runs());
    console.log(
      fleet.jobs[0]?.process.lines
        .filter(({ text }) => /"level":(40|50|60)/.test(text))
        .map(({ text }) => text.slice(0, 250))
        .slice(0, 20),
      fleet.jobs[0]?.unasked,
    );
  });
});
