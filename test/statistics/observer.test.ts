/** One gateway at a time observes the fleet, shows its queue, and keeps its history. */
import { describe, expect, it } from "vitest";
import { scopes } from "../../gateway/auth/owner/scopes.js";
import { registryKeys } from "#shared/queue/keys.js";
import { keyedEnv, useFolder, useKeys } from "../auth/keyed.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { readUntil } from "../support/until.js";
import { infer, simple, step, type VersionStatistics } from "./load.js";
import { observer, pageOf } from "./observing.js";

const folder = useFolder();
const running = useFleet({
  models: ["accumulate", "simple", "tale-gpt"],
  gateways: 2,
  env: {
    ...keyedEnv(folder),
    BATON_AUTH_OPEN: "health,metadata",
    BATON_METRICS_PORT: "0",
    BATON_METRICS_TENANTS: "1",
  },
});
const { make } = useKeys(running);
const FAMILY = "baton_queue_requests";

interface History {
  readonly step_ms: number;
  readonly at: readonly number[];
  readonly series: Readonly<Record<string, Readonly<Record<string, readonly (number | null)[]>>>>;
}

describe("the observer", () => {
  it("is one gateway, which shows the fleet and its queue", async () => {
    const found = await pageOf(await observer(running.fleet.gateways));
    const simpleIs = (name: string, more = "") => found.value(`${name}{model="simple",version="1"${more}}`);
    for (const state of ["ready", "parked", "behind_sequence", "running"]) {
      expect(simpleIs(FAMILY, `,state="${state}"`)).toBe(0);
    }
    expect(simpleIs("baton_queue_oldest_seconds")).toBe(0);
    expect(simpleIs("nv_inference_pending_request_count")).toBe(0);
    expect(simpleIs("baton_model_workers")).toBe(1);
    expect(found.value('baton_fleet_processes{role="worker"}')).toBe(1);
    expect(found.value("baton_unserved_buckets")).toBe(0);
    expect(found.value("baton_gone_back_total")).toBe(0);
    expect(found.value('baton_queue_limit_ratio{model="simple",limit="requests"}')).toBe(0);
    const zeros = ["dead_requests", "outbox_events", "webhook_pending", "webhook_oldest_seconds", "delayed_jobs"];
    for (const name of zeros) expect(found.value(`baton_${name}`)).toBe(0);
    expect(found.value('baton_batches{state="in_progress"}')).toBe(0);
    expect(found.value('baton_jobs{state="scheduled"}')).toBe(0);
    // The gateway is connected by a proxy of the fleet.
    const [[memory, bytes] = ["", 0]] = [...found.samples].filter(([name]) => name.includes("redis_memory_bytes"));
    expect(memory).toMatch(/^baton_redis_memory_bytes\{node="127\.0\.0\.1:\d+"\}$/);
    expect(bytes).toBeGreaterThan(0);
    expect(found.value(memory.replace("memory_bytes", "replicas"))).toBe(0);
  });

  it("sends less than a command a second while nothing waits", async () => {
    const commands = async () => {
      const said = await running.redis.info("commandstats");
      const of = (command: string) => Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(said)?.[1] ?? 0);
      return ["pexpire", "xadd", "xinfo\\|groups"].map(of);
    };
    const points = () => running.redis.xlen(registryKeys.history);
    const from = await points();
    const before = await commands();
    const [renewed = 0, added = 0, looks] = (await readUntil(points, (now) => now >= from + 2, {
      patienceMs: 20_000,
    }),
    await commands()).map((calls, i) => calls - (before[i] ?? 0));
    expect(renewed).toBeLessThanOrEqual(3);
    expect(added).toBeLessThanOrEqual(3);
    // No lane has load, so the observer looks at none.
    expect(looks).toBe(0);
  });

  it("counts requests that wait, and since when", async () => {
    const { headers } = await make();
    const [worker] = running.fleet.workers;
    expect(await infer(running.url, "accumulate", step(1, { sequence_start: true }), headers)).toBe(200);
    worker?.freeze();
    try {
      const waiting = [
        infer(running.url, "simple", simple, headers),
        infer(running.url, "simple", simple, headers),
        infer(running.url, "accumulate", step(1), headers),
        infer(running.url, "accumulate", step(1), headers),
      ];
      const observing = await observer(running.fleet.gateways);
      const name = (model: string, state: string) => `${FAMILY}{model="${model}",version="1",state="${state}"}`;
      const found = await readUntil(
        () => pageOf(observing),
        (one) => one.value('baton_queue_oldest_seconds{model="simple",version="1"}') > 0,
        { patienceMs: 20_000 },
      );
      const held = found.value(name("simple", "ready")) + found.value(name("simple", "running"));
      expect(held).toBe(2);
      expect(found.value(name("accumulate", "behind_sequence"))).toBe(1);
      expect(found.value('nv_inference_pending_request_count{model="accumulate",version="1"}')).toBeGreaterThan(0);
      expect(found.value('baton_queue_bytes{model="simple"}')).toBeGreaterThan(0);
      expect(found.value('baton_sequences{model="accumulate",state="busy"}')).toBe(1);
      expect(found.value('baton_sequences{model="accumulate",state="live"}')).toBe(0);
      expect(found.value('baton_tenant_requests{tenant="acme"}')).toBe(4);
      expect(found.value('baton_tenant_bytes{tenant="acme"}')).toBeGreaterThan(0);
      expect(found.samples.has('baton_tenant_requests{tenant="_other"}')).toBe(false);
      worker?.thaw();
      expect(await Promise.all(waiting)).toEqual([200, 200, 200, 200]);
    } finally {
      worker?.thaw();
    }
  });
});

describe("the statistics of a caller", () => {
  it("are those of its models", async () => {
    const { headers } = await make({ models: ["simple"] });
    const ask = async (path: string) => {
      const answer = await fetch(`${running.url}/v2/models/${path}`, { headers });
      return [answer.status, (await answer.json()) as { model_stats?: { name: string }[]; error?: string }] as const;
    };
    // The worker may just have come back.
    const [status, all] = await readUntil(
      () => ask("stats"),
      ([, said]) => said.model_stats?.length === 1,
      { patienceMs: 5_000 },
    );
    expect([status, all.model_stats?.map(({ name }) => name)]).toEqual([200, ["simple"]]);
    const refused = await ask("accumulate/stats");
    expect([refused[0], refused[1].error]).toEqual([400, "requested model 'accumulate' is not available"]);
    expect((await fetch(`${running.url}/v2/models/stats`)).status).toBe(401);
  });
});

describe("the statistics of a generator", () => {
  it("have its responses by index", async () => {
    const { headers } = await make();
    const answer = await fetch(`${running.url}/v2/models/tale-gpt/generate_stream`, {
      method: "POST",
      headers,
      body: JSON.stringify({ text_input: "Once upon a time", max_tokens: 70, seed: 1 }),
    });
    const events = (await answer.text()).split("\n").filter((line) => line.startsWith("data: "));
    expect([answer.status, events.length > 64]).toEqual([200, true]);
    const read = async () => {
      const told = await fetch(`${running.url}/v2/models/tale-gpt/stats`, { headers });
      const { model_stats: all } = (await told.json()) as { readonly model_stats: readonly VersionStatistics[] };
      return all[0] ?? expect.fail("the model is served");
    };
    // Parts of a report come one after the other, and a sum over some may already be large.
    const isWhole = ({ inference_stats: { success }, response_stats: of }: VersionStatistics) =>
      success.count > 0 && Object.keys(of).length === 65;
    const found = await readUntil(read, isWhole, { patienceMs: 10_000 });
    expect(found).toMatchObject({
      inference_count: 1,
      execution_count: 1,
      inference_stats: { success: { count: 1 }, queue: { count: 1 }, compute_infer: { count: 1 } },
      batch_stats: [{ batch_size: 1, compute_infer: { count: 1 } }],
    });
    expect(Object.keys(found.response_stats)).toEqual(Array.from({ length: 65 }, (_, i) => String(i)));
    expect(found.response_stats["0"]?.success.count).toBe(1);
    expect(found.response_stats["0"]?.success.ns).toBeGreaterThan(0);
    expect(found.response_stats["64"]?.success.count).toBeGreaterThan(1);
  });
});

describe("the history", () => {
  const read = async (query: string, headers: Record<string, string>, url = running.url) => {
    const answer = await fetch(`${url}/v2/fleet/history${query}`, { headers });
    return { status: answer.status, body: (await answer.json()) as History & { error?: string } };
  };

  it("is for operators, and says how each model stood", async () => {
    const operator = (await make({ scopes })).headers;
    expect((await read("", (await make()).headers)).status).toBe(403);
    expect(await infer(running.url, "simple", simple, operator)).toBe(200);
    const sum = ({ body }: { readonly body: History }) =>
      (body.series["steps"]?.["simple"] ?? []).reduce((all: number, steps) => all + (steps ?? 0), 0);
    const found = await readUntil(
      () => read("?minutes=30&models=simple,nobody", operator),
      (one) => sum(one) >= 3,
      { patienceMs: 20_000 },
    );
    expect(sum(found)).toBe(3);
    const { step_ms, at, series } = found.body;
    expect([step_ms, Object.keys(series).length]).toEqual([5_000, 10]);
    expect(at).toEqual(at.toSorted((a, b) => a - b));
    for (const values of Object.values(series)) {
      expect(values["simple"]).toHaveLength(at.length);
      expect(values["nobody"]?.every((value) => value === null)).toBe(true);
    }
    const known = series["p99_ms"]?.["simple"]?.some((value) => value !== null && value > 0);
    expect(known).toBe(true);
    const [, other = ""] = running.fleet.urls;
    expect((await read("?minutes=1", operator, other)).body.at.length).toBeLessThanOrEqual(12);
    for (const query of ["?minutes=0", "?minutes=31", "?minutes=x", "?since=1"]) {
      const { status, body } = await read(query, operator);
      expect([status, body.error]).toEqual([400, expect.stringMatching(/minutes|since/)]);
    }
  });
});
