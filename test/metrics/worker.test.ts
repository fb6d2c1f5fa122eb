/** A worker's page agrees with its clients. */
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { readUntil } from "../support/until.js";
import { metricsOf, scrape, type Page } from "./scrape.js";

const running = useFleet({ models: ["accumulate", "simple", "picky"], env: { BATON_METRICS_PORT: "0" } });

async function infer(model: string, body: object, headers: Record<string, string> = {}): Promise<number> {
  const url = `${running.url}/v2/models/${model}/infer`;
  const answer = await fetch(url, { method: "POST", body: JSON.stringify(body), headers });
  await answer.arrayBuffer();
  return answer.status;
}
const step = (sequence: number, flags: object = {}) => ({
  parameters: { sequence_id: sequence, ...flags },
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }],
});
const page = async (): Promise<Page> => {
  const [worker] = running.fleet.workers;
  return scrape(await metricsOf(worker ?? expect.fail("there is a worker")));
};

describe("a worker's page", () => {
  it("has every count at 0 from the load on", async () => {
    const { samples, types } = await page();
    for (const reason of ["BACKEND", "CANCELED", "REJECTED", "OTHER"]) {
      expect(samples.get(`nv_inference_request_failure{model="simple",version="1",reason="${reason}"}`)).toBe(0);
    }
    expect(samples.get('nv_inference_request_success{model="accumulate",version="1"}')).toBe(0);
    expect(samples.get('nv_model_load_duration_secs{model="simple",version="1"}')).toBeGreaterThan(0);
    // A model without sequences can have no state, so a count of its states would say nothing.
    const ofStates = (model: string) =>
      ["baton_checkpoints_total", "baton_checkpoint_bytes_total", "baton_state_cache_bytes"].map((name) =>
        samples.get(`${name}{model="${model}",version="1"}`),
      );
    expect(ofStates("accumulate")).toEqual([0, 0, 0]);
    expect(ofStates("simple")).toEqual([undefined, undefined, undefined]);
    expect(types.get("baton_batch_rows")).toBe("histogram");
    expect(types.get("process_cpu_seconds_total")).toBe("counter");
  });

  it("counts what clients got, and a repetition under a key not at all", async () => {
    const before = await page();
    const keyed = { "idempotency-key": "once" };
    const statuses = [
      await infer("accumulate", step(1, { sequence_start: true })),
      await infer("accumulate", step(1)),
      await infer("accumulate", step(1, { sequence_end: true })),
      await infer("accumulate", step(2, { sequence_start: true }), keyed),
      await infer("accumulate", step(2, { sequence_start: true }), keyed),
      await infer("accumulate", step(3)),
    ];
    expect(statuses).toEqual([200, 200, 200, 200, 200, 400]);
    // A gateway answers as soon as the worker has published, which may be before it has counted.
    const count = (one: Page, name: string) => one.value(`${name}{model="accumulate",version="1"}`);
    const after = await readUntil(page, (one) => count(one, "nv_inference_request_success") >= 4);
    const added = (name: string, more = "") => {
      const series = `${name}{model="accumulate",version="1"${more}}`;
      return after.value(series) - before.value(series);
    };
    expect({
      success: added("nv_inference_request_success"),
      rows: added("nv_inference_count"),
      runs: added("nv_inference_exec_count"),
      batches: added("baton_batch_rows_count"),
      committed: added("baton_commits_total", ',fate="committed"'),
      checkpoints: added("baton_checkpoints_total"),
      begun: added("baton_state_lookups_total", ',from="start"'),
      remembered: added("baton_state_lookups_total", ',from="memory"'),
      steps: added("baton_step_seconds_count"),
      waits: added("baton_queue_seconds_count"),
    }).toEqual({
      success: 4,
      rows: 4,
      runs: 4,
      batches: 4,
      committed: 4,
      checkpoints: 4,
      begun: 2,
      remembered: 2,
      steps: 4,
      waits: 4,
    });
    const times = ["compute_input", "compute_infer", "compute_output", "queue"].map((part) =>
      added(`nv_inference_${part}_duration_us`),
    );
    for (const time of times) expect(time).toBeGreaterThanOrEqual(0);
    const parts = times.reduce((sum, time) => sum + time, 0);
    // Each part is a whole number of microseconds.
    expect(added("nv_inference_request_duration_us")).toBeGreaterThanOrEqual(parts - 4 * times.length);
  });

  it("counts failures by Triton's reasons", async () => {
    const failed = (one: Page) => one.value('nv_inference_request_failure{model="picky",version="1",reason="BACKEND"}');
    const before = failed(await page());
    const bad = { inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [1_000_000] }] };
    expect(await infer("picky", bad)).toBe(500);
    const after = await readUntil(page, (one) => failed(one) > before);
    expect(failed(after) - before).toBe(1);
    expect(after.value('nv_inference_request_success{model="picky",version="1"}')).toBe(0);
  });
});
