/** The pages of workers say that a worker died, and count nothing twice that another took over. */
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { readUntil } from "../support/until.js";
import { metricsOf, scrape, type Page } from "./scrape.js";

const MODEL = "gen-cheap";
const running = useFleet({ models: [MODEL], workers: 2, env: { BATON_METRICS_PORT: "0" } });
const ofModel = `model="${MODEL}",version="1"`;
const TOKENS = 1_500;

describe("a worker that dies", () => {
  it("leaves its stream to another, which counts the takeover and its own tokens", async () => {
    const { workers } = running.fleet;
    const pages = () => Promise.all(workers.map(async (worker) => scrape(await metricsOf(worker))));
    const runs = (page: Page) => page.value(`baton_streams_running{${ofModel}}`) > 0;
    const tokens = (page: Page) => page.value(`baton_generated_tokens_total{${ofModel}}`);
    const generating = fetch(`${running.url}/v2/models/${MODEL}/generate`, {
      method: "POST",
      body: JSON.stringify({ text_input: "Once upon a time", max_tokens: TOKENS, ignore_eos: true }),
    });
    const seen = await readUntil(pages, (all) => all.some((page) => runs(page) && tokens(page) > 0));
    const at = seen.findIndex(runs);
    const [dying, survivor] = [workers[at], workers[1 - at]];
    if (dying === undefined || survivor === undefined) return expect.fail("no worker has the stream");
    const { workers: announced } = (await (await fetch(`${running.url}/v2/fleet`)).json()) as {
      workers: { name: string; pid: number }[];
    };
    const { pid } = announced.find(({ name }) => name.startsWith(`${dying.name}.`)) ?? expect.fail("no pid");
    process.kill(pid, "SIGKILL");
    expect((await generating).status).toBe(200);
    const after = await readUntil(
      async () => scrape(await metricsOf(survivor)),
      (page) => page.value(`baton_generations_total{${ofModel},reason="length"}`) === 1,
    );
    expect({
      taken: after.value(`baton_takeovers_total{${ofModel},of="stream"}`),
      recoveries: after.value(`baton_recovery_seconds_count{${ofModel}}`),
      prompts: after.value(`baton_prompt_tokens_total{${ofModel}}`),
      firsts: after.value(`baton_time_to_first_token_seconds_count{${ofModel}}`),
      success: after.value(`nv_inference_request_success{${ofModel}}`),
    }).toEqual({ taken: 1, recoveries: 1, prompts: 0, firsts: 0, success: 1 });
    const before = seen[at] ?? expect.fail("there was a page");
    expect(tokens(before) + tokens(after)).toBeLessThanOrEqual(TOKENS);
    expect(tokens(after)).toBeGreaterThan(0);
    expect(after.value(`baton_recovery_seconds_sum{${ofModel}}`)).toBeGreaterThan(0);
    expect(after.value("baton_beat_delay_seconds_count")).toBeGreaterThan(0);
    expect(after.value('baton_nats_published_total{kind="record"}')).toBeGreaterThan(0);
  });

  it("is known to the worker that replaces it", async () => {
    const isRestarted = (page: Page) => page.samples.get('baton_supervisor_restarts_total{signal="SIGKILL"}') === 1;
    const pages = () => Promise.all(running.fleet.workers.map(async (worker) => scrape(await metricsOf(worker))));
    const found = await readUntil(
      () => pages().catch(() => []),
      (all) => all.some(isRestarted),
    );
    expect(found.filter(isRestarted)).toHaveLength(1);
  });
});
