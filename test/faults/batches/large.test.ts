/**
 * A large file, only with BATON_FULL=1: the memory of the jobs process, a kill in the middle that
 * costs no line, the rate of a batch beside a client that sends the same requests over HTTP, and
 * the latency of an interactive client. The test prints its figures.
 */
import { readFileSync } from "node:fs";
import OpenAI from "openai";
import { Agent, request } from "undici";
import { expect, it } from "vitest";
import { ended, inferLine } from "../../support/batches/batches.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { delay } from "#shared/retry.js";
import { readUntil, until } from "../../support/until.js";

const full = process.env["BATON_FULL"] === "1";
const LINES = Number(process.env["BATON_BATCH_LINES"] ?? 100_000);
const TIMEOUT_MS = 1_800_000;
const CONNECTIONS = 64;
/**
 * A look at a batch takes the gateway as long as a request, so frequent looks would disturb the
 * measurement.
 */
const LOOK_EVERY_MS = 250;
/** A batch leaves room to clients for this long after their last request. */
const CLIENTS_REMEMBERED_MS = 6_000;
/** Largest resident size of the jobs process, in bytes. */
const MOST_BYTES = 600 * 1024 * 1024;

const served = useFleet({ jobs: 1, models: ["simple"], direct: true });
const url = "/v2/models/simple/infer";
const body = JSON.stringify(inferLine(0).body);
const agent = new Agent({ connections: CONNECTIONS });

async function infer(): Promise<void> {
  const headers = { "content-type": "application/json" };
  const answer = await request(served.url + url, { method: "POST", headers, body, dispatcher: agent });
  await answer.body.dump();
  if (answer.statusCode !== 200) throw new Error(`an answer with status ${answer.statusCode}`);
}

/** Each connection sends its next request after the answer to the last one. */
async function closedLoop(requests: number): Promise<number> {
  const begunAt = performance.now();
  let left = requests;
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      while (left-- > 0) await infer();
    }),
  );
  return requests / ((performance.now() - begunAt) / 1_000);
}

/** @returns the latencies of one client that asks one request after the other, in ms, sorted */
async function interactive(isOver: () => boolean): Promise<number[]> {
  const took: number[] = [];
  while (!isOver()) {
    const at = performance.now();
    await infer();
    took.push(performance.now() - at);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return took.sort((a, b) => a - b);
}

const percentile = (sorted: readonly number[], share: number) => sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
const after = (ms: number) => {
  const at = performance.now() + ms;
  return () => performance.now() > at;
};

async function untilSeldomAsked(condition: () => Promise<boolean>): Promise<void> {
  const patience = { patienceMs: TIMEOUT_MS, everyMs: LOOK_EVERY_MS };
  if (!(await readUntil(condition, (holds) => holds, patience))) throw new Error("it did not happen in time");
}

function peakBytes(pid: number): number {
  const [, kib = "0"] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kib) * 1_024;
}

it.runIf(full)(
  "a large file is run through a kill, quickly, in bounded memory, and behind others",
  async () => {
    const openai = new OpenAI({ baseURL: `${served.url}/v1`, apiKey: "none", maxRetries: 8 });
    const [jobs] = served.fleet.jobs;
    if (jobs === undefined) throw new Error("no jobs process");
    const lines = Array.from({ length: LINES }, (_, i) => JSON.stringify(inferLine(i))).join("\n");
    const file = new File([lines], "large.jsonl");
    const { id: input } = await openai.files.create({ file, purpose: "batch" });
    const begin = async () => {
      const endpoint = url as "/v1/completions";
      const { id } = await openai.batches.create({ input_file_id: input, endpoint, completion_window: "24h" });
      const read = async () => (await openai.batches.retrieve(id)).request_counts?.completed ?? 0;
      return { id, read };
    };
    await closedLoop(2_000); // everything is warm then
    const alone = await interactive(after(10_000));

    // For comparison, without a kill and without another client, over the same number of lines.
    const part = Math.floor(LINES / 5);
    const plain = await begin();
    await untilSeldomAsked(async () => (await plain.read()) > part / 4);
    await delay(CLIENTS_REMEMBERED_MS);
    const from = await plain.read();
    const begunAt = performance.now();
    await untilSeldomAsked(async () => (await plain.read()) >= from + part);
    const batchRate = ((await plain.read()) - from) / ((performance.now() - begunAt) / 1_000);
    await openai.batches.cancel(plain.id);
    await ended(openai, plain.id);
    const loopRate = await closedLoop(part);

    // With a kill in the middle and another client.
    const { id, read } = await begin();
    await untilSeldomAsked(async () => (await read()) > LINES / 3);
    const peakBefore = peakBytes(jobs.process.pid);
    const doneBefore = await read();
    await jobs.restart();
    await until(async () => (await read()) > doneBefore, 60_000);
    let isOver = false;
    const beside = interactive(() => isOver);
    const batch = await ended(openai, id, TIMEOUT_MS);
    isOver = true;
    const besides = await beside;
    const peak = Math.max(peakBefore, peakBytes(jobs.process.pid));
    expect(batch.request_counts).toEqual({ total: LINES, completed: LINES, failed: 0 });
    const seen = new Set<string>();
    let rest = "";
    let count = 0;
    const output = await openai.files.content(batch.output_file_id ?? "");
    const decoder = new TextDecoder();
    for await (const piece of output.body as unknown as AsyncIterable<Uint8Array>) {
      const whole = (rest + decoder.decode(piece, { stream: true })).split("\n");
      rest = whole.pop() ?? "";
      for (const line of whole) {
        seen.add((JSON.parse(line) as { custom_id: string }).custom_id);
        count++;
      }
    }
    expect(count).toBe(LINES);
    expect(seen.size).toBe(LINES);
    const figures = {
      lines: LINES,
      batch_per_s: Math.round(batchRate),
      closed_loop_per_s: Math.round(loopRate),
      ratio: Number((batchRate / loopRate).toFixed(2)),
      peak_rss_mib: Math.round(peak / 1024 / 1024),
      interactive_p99_alone_ms: Number(percentile(alone, 0.99).toFixed(1)),
      interactive_p99_beside_ms: Number(percentile(besides, 0.99).toFixed(1)),
      interactive_p50_alone_ms: Number(percentile(alone, 0.5).toFixed(1)),
      interactive_p50_beside_ms: Number(percentile(besides, 0.5).toFixed(1)),
    };
    process.stdout.write(`${JSON.stringify(figures)}\n`);
    expect(peak).toBeLessThan(MOST_BYTES);
  },
  TIMEOUT_MS,
);
