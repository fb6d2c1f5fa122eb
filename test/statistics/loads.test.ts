/** What workers use and do: at `/v2/fleet`, and as memory in the statistics. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { registryKeys } from "#shared/queue/keys.js";
import { fleetShape } from "../../gateway/api/fleet.js";
import { root } from "../support/fleet/root.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { readUntil } from "../support/until.js";
import { infer, statistics, step } from "./load.js";

const running = useFleet({
  models: ["accumulate", "gen-cheap"],
  workers: 1,
  env: { BATON_HISTORY: "false" },
});
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { readonly version: string };

async function workersNow() {
  const answer = await fetch(`${running.url}/v2/fleet`);
  return fleetShape().parse(await answer.json()).workers;
}
const theWorker = async () => (await workersNow())[0] ?? expect.fail("there is a worker");
const cpuOf = async (model: string) => {
  const [one] = await statistics(running.url, `${model}/stats`);
  const [first] = (one?.memory_usage ?? []) as readonly { readonly byte_size: number }[];
  return first?.byte_size ?? 0;
};

describe("the load of a worker", () => {
  it("says what it uses, and what it has done lately", async () => {
    const weights = await cpuOf("accumulate");
    expect(weights).toBeGreaterThan(0);
    const first = await theWorker();
    expect(first).toMatchObject({ version, load: { held: 0 } });
    const begin = step(1, { sequence_start: true });
    for (let i = 0; i < 20; i++) expect(await infer(running.url, "accumulate", i === 0 ? begin : step(1))).toBe(200);
    const text = { text_input: "once upon", max_tokens: 16, ignore_eos: true };
    const generated = await fetch(`${running.url}/v2/models/gen-cheap/generate`, {
      method: "POST",
      body: JSON.stringify(text),
    });
    expect(generated.status).toBe(200);
    const busy = await readUntil(
      theWorker,
      ({ load }) => (load?.steps_per_second ?? 0) > 0 && (load?.tokens_per_second ?? 0) > 0,
      { patienceMs: 20_000 },
    );
    expect(busy.load?.steps_per_second).toBeGreaterThan(0);
    expect(busy.load?.tokens_per_second).toBeGreaterThan(0);
    expect(busy.load?.busy_ratio).toBeGreaterThan(0);
    expect(busy.load?.busy_ratio).toBeLessThanOrEqual(1);
    expect(busy.load?.cpu_ratio).toBeGreaterThan(0);
    expect(busy.load?.memory_bytes).toBeGreaterThan(1e6);
    expect(busy.beat_age_ms).toBeGreaterThanOrEqual(0);
    // The state of the sequence lies in the worker's memory.
    expect(await cpuOf("accumulate")).toBeGreaterThan(weights);
    const idle = await readUntil(theWorker, ({ load }) => load?.steps_per_second === 0, { patienceMs: 20_000 });
    expect(idle.load).toMatchObject({ steps_per_second: 0, tokens_per_second: 0, busy_ratio: 0, held: 0 });
  });

  it("goes with the worker, and its report stays", async () => {
    const { name } = await theWorker();
    const field = `${name} 0`;
    expect(await running.redis.hexists(registryKeys.reports, field)).toBe(1);
    await running.fleet.workers[0]?.terminate();
    expect(await running.redis.hexists(registryKeys.reports, field)).toBe(0);
    expect(await running.redis.exists(registryKeys.past)).toBe(1);
    // The gateway hears of it with its next look at the workers.
    await expect.poll(workersNow, { timeout: 10_000 }).toEqual([]);
    expect(await cpuOf("accumulate")).toBe(0);
  });
});
