import { describe, expect, it } from "vitest";
import { Cells } from "#shared/metrics/cells.js";
import { servedModel } from "../../test/fixtures/served-models.js";
import { show, type Observed } from "./observed.js";

const worker = (models: readonly ReturnType<typeof servedModel>[]) =>
  ({ worker: "w1", host: "h", pid: 1, startedAt: 0, models, failed: [] }) as unknown as Observed["workers"][number];

function seen(more: Partial<Observed> = {}): Observed {
  return {
    look: { loads: new Map(), versions: [] },
    workers: [worker([servedModel("m")])],
    lapsed: [],
    unservedBuckets: 0,
    limits: { queue: 10, queueBytes: 1_000, liveSequences: 5 } as Observed["limits"],
    processes: { gateway: 1, jobs: 0 },
    beside: {},
    jobsHeld: 0,
    ended: [],
    ...more,
  };
}

describe("the observer's page", () => {
  it("tells levels, budgets and memory apart, and leaves out a limit that Redis does not have", () => {
    const cells = new Cells();
    const server = { used: 10, replicas: 1 };
    show(
      cells,
      seen({
        look: {
          loads: new Map(),
          versions: [
            { name: "m", version: "1", ready: 0, running: 0, parked: 3, oldestMs: 5, levels: [1, 2] },
            { name: "m", version: "2", ready: 0, running: 0, parked: 1, oldestMs: 7, levels: [1] },
          ],
        },
        workers: [worker([servedModel("m"), { ...servedModel("m"), version: "2" }])],
        beside: {
          servers: [
            { ...server, node: "a:1", limit: 20 },
            { ...server, node: "b:1", limit: 0 },
          ],
          budgets: new Map([["acme", { jobs: 0.5 }]]),
        },
      }),
    );
    const page = cells.page();
    expect(page).toContain('baton_queue_level_requests{model="m",level="1"} 2\n');
    expect(page).toContain('baton_queue_level_requests{model="m",level="2"} 2\n');
    expect(page).toContain('baton_redis_memory_limit_bytes{node="a:1"} 20\n');
    expect(page).not.toContain('baton_redis_memory_limit_bytes{node="b:1"}');
    expect(page).toContain('baton_redis_memory_bytes{node="b:1"} 10\n');
    expect(page).toContain('baton_budget_used_ratio{tenant="acme",budget="jobs"} 0.5\n');
    show(cells, undefined);
    expect(cells.page()).toBe("");
  });

  it("shows the first tenants, and the others together", () => {
    const cells = new Cells();
    const of = (...tenants: string[]) =>
      seen({
        look: { loads: new Map(tenants.map((name) => [`t:${name}`, { requests: 2, bytes: 3 }])), versions: [] },
      });
    const lines = () => cells.page().match(/^baton_tenant_requests.*$/gm) ?? [];
    show(cells, of("a", "b"));
    expect(lines()).toEqual([]);
    cells.limitTenants(1);
    show(cells, of("a", "b", "c"));
    expect(lines()).toEqual(['baton_tenant_requests{tenant="a"} 2', 'baton_tenant_requests{tenant="_other"} 4']);
    show(cells, of());
    expect(lines()).toEqual(['baton_tenant_requests{tenant="a"} 0']);
  });

  it("tells jobs that wait, stand in the queue and run apart, and adds up their ends", () => {
    const cells = new Cells();
    const load = (requests: number) => ({ requests, bytes: 0 });
    const loads = new Map([
      ["later", load(4)],
      ["g:j", load(5)],
    ]);
    const counted = [
      { model: "m", state: "completed", count: 7 },
      { model: "_other", state: "failed", count: 2 },
      { model: "m", state: "expired", count: 0 },
    ];
    show(cells, seen({ look: { loads, versions: [] }, jobsHeld: 2, ended: counted }));
    const lines = () => cells.page().match(/^baton_jobs.* [1-9]\d*$/gm) ?? [];
    const ended = [
      'baton_jobs_ended_total{model="m",state="completed"} 7',
      'baton_jobs_ended_total{model="_other",state="failed"} 2',
    ];
    expect(lines()).toEqual([
      'baton_jobs{state="scheduled"} 4',
      'baton_jobs{state="queued"} 3',
      'baton_jobs{state="running"} 2',
      ...ended,
    ]);
    expect(cells.page()).toContain('baton_jobs_ended_total{model="m",state="expired"} 0\n');
    // A report may be older than the counts.
    show(cells, seen({ look: { loads, versions: [] }, jobsHeld: 9, ended: undefined }));
    expect(cells.page()).not.toContain("baton_jobs_ended_total");
    expect(lines()).toContain('baton_jobs{state="running"} 5');
    expect(cells.page()).toContain('baton_jobs{state="queued"} 0\n');
  });
});
