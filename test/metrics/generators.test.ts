/** The pages of a worker and of a gateway agree with the clients of a language model. */
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { readUntil } from "../support/until.js";
import { metricsOf, scrape, type Page } from "./scrape.js";

const MODEL = "gen-cheap";
const running = useFleet({ models: [MODEL], env: { BATON_METRICS_PORT: "0" } });
const ofModel = `{model="${MODEL}",version="1"`;

const workerPage = async (): Promise<Page> => {
  const [worker] = running.fleet.workers;
  return scrape(await metricsOf(worker ?? expect.fail("there is a worker")));
};
const gatewayPage = async (): Promise<Page> => {
  const [gateway] = running.fleet.gateways;
  return scrape(await metricsOf((gateway ?? expect.fail("there is a gateway")).member));
};
const value = (page: Page, name: string, more = "") => page.value(`${name}${ofModel}${more}}`);

interface Completion {
  readonly id: string;
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number };
}

async function complete(body: object): Promise<Completion> {
  const whole = { model: MODEL, prompt: "Once upon a time", temperature: 0, ...body };
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${running.url}/v1/completions`, { method: "POST", headers, body: JSON.stringify(whole) });
  expect(answer.status).toBe(200);
  return (await answer.json()) as Completion;
}

/** @returns the public id, and a function that leaves the stream */
async function begin(body: object): Promise<{ id: string; leave: () => void }> {
  const leaving = new AbortController();
  const answer = await fetch(`${running.url}/v2/models/${MODEL}/generate_stream`, {
    method: "POST",
    signal: leaving.signal,
    body: JSON.stringify({ text_input: "Once upon a time", parameters: { ignore_eos: true, ...body } }),
  });
  expect(answer.status).toBe(200);
  return { id: answer.headers.get("baton-request-id") ?? "", leave: () => leaving.abort() };
}

describe("the page of a generator's worker", () => {
  it("counts tokens, ends and times as clients see them", async () => {
    const before = await workerPage();
    const first = await complete({ max_tokens: 5, ignore_eos: true });
    // The second prompt is known, up to its last token.
    const second = await complete({ max_tokens: 9, ignore_eos: true });
    const two = await complete({ max_tokens: 4, ignore_eos: true, n: 2, prompt: "A dog" });
    const ended = (page: Page) => value(page, "baton_generations_total", ',reason="length"');
    const after = await readUntil(workerPage, (page) => ended(page) >= 3);
    const added = (name: string, more = "") => value(after, name, more) - value(before, name, more);
    const all = [first.usage, second.usage, two.usage];
    const generated = all.reduce((sum, { completion_tokens }) => sum + completion_tokens, 0);
    const prompts = all.reduce((sum, { prompt_tokens }) => sum + prompt_tokens, 0);
    expect(generated).toBe(5 + 9 + 8);
    expect({
      success: added("nv_inference_request_success"),
      count: added("nv_inference_count"),
      lengths: added("baton_generations_total", ',reason="length"'),
      generated: added("baton_generated_tokens_total"),
      prompts: added("baton_prompt_tokens_total"),
      looked:
        added("baton_prefix_cache_tokens_total", ',result="hit"') +
        added("baton_prefix_cache_tokens_total", ',result="miss"'),
      firsts: added("baton_time_to_first_token_seconds_count"),
      firstsOfTriton: added("nv_inference_first_response_histogram_ms_count"),
      between: added("baton_inter_token_seconds_count"),
      whole: added("baton_generation_seconds_count"),
      queued: added("baton_generation_queue_seconds_count"),
      prefills: added("baton_prefill_seconds_count"),
      decodes: added("baton_decode_seconds_count"),
      running: value(after, "baton_streams_running"),
      waiting: value(after, "baton_streams_waiting"),
      used: value(after, "baton_kv_cache_used_ratio"),
    }).toEqual({
      success: 3,
      count: 3,
      lengths: 3,
      generated,
      prompts,
      looked: prompts,
      firsts: 3,
      firstsOfTriton: 3,
      // The two choices of a request advance in step.
      between: 4 + 8 + 3,
      whole: 3,
      queued: 3,
      prefills: 3,
      decodes: 3,
      running: 0,
      waiting: 0,
      used: 0,
    });
    const hits = added("baton_prefix_cache_tokens_total", ',result="hit"');
    expect(hits).toBeGreaterThanOrEqual(second.usage.prompt_tokens - 1);
    // A pass for each prompt and each further token.
    expect(added("nv_inference_exec_count")).toBe(5 + 9 + 4);
    expect(added("baton_iteration_tokens_sum")).toBe(prompts - hits + (4 + 8 + 2 * 3));
    expect(added("baton_log_bytes_total")).toBeGreaterThan(generated);
    expect(value(after, "nv_model_load_duration_secs")).toBeGreaterThan(0);
    const us = (part: string) => added(`nv_inference_${part}_duration_us`);
    expect(us("request")).toBeGreaterThanOrEqual(us("queue") + us("compute_infer") - 3);
  });

  it("shows what runs, and counts a generation that a client cancels in one place", async () => {
    const [worker, gateway] = [await workerPage(), await gatewayPage()];
    const { id, leave } = await begin({ max_tokens: 50_000 });
    const busy = await readUntil(workerPage, (page) => value(page, "baton_streams_running") === 1);
    expect(value(busy, "baton_streams_running")).toBe(1);
    expect(value(busy, "baton_kv_cache_used_ratio")).toBeGreaterThan(0);
    const reads = 'baton_stream_readers{kind="sse"}';
    expect((await gatewayPage()).value(reads)).toBe(1);
    leave();
    const resumed = new AbortController();
    const events = await fetch(`${running.url}/v2/requests/${id}/events?after=0`, { signal: resumed.signal });
    expect(events.status).toBe(200);
    const now = await readUntil(gatewayPage, (page) => page.value("baton_stream_resumes_total") > 0);
    expect(now.value("baton_stream_resumes_total") - gateway.value("baton_stream_resumes_total")).toBe(1);
    const cancelled = await fetch(`${running.url}/v2/requests/${id}`, { method: "DELETE" });
    expect(cancelled.status).toBeLessThan(300);
    await events.text().catch(() => "");
    const idle = await readUntil(workerPage, (page) => value(page, "baton_streams_running") === 0);
    expect(value(idle, "baton_streams_running")).toBe(0);
    expect(value(idle, "nv_inference_request_success")).toBe(value(worker, "nv_inference_request_success"));
    const deleted = `baton_cancelled_total{model="${MODEL}",version="1",why="deleted"}`;
    const failed = `nv_inference_request_failure{model="${MODEL}",version="1",reason="CANCELED"}`;
    const counted = await readUntil(gatewayPage, (page) => page.samples.get(deleted) === 1);
    expect([counted.value(deleted), counted.value(failed)]).toEqual([1, 1]);
    expect(value(idle, "nv_inference_request_failure", ',reason="CANCELED"')).toBe(0);
    expect(value(idle, "baton_generations_total", ',reason="cancelled"')).toBe(0);
    const left = await readUntil(gatewayPage, (page) => page.value(reads) === 0);
    expect(left.value(reads)).toBe(0);
  });
});
