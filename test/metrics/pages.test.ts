/** Prometheus' own program finds nothing amiss in the page of each role, after some work. */
import { describe, expect, it } from "vitest";
import { Cells } from "#shared/metrics/cells.js";
import { families, type Family, type FamilyName } from "#shared/metrics/families.js";
import { complaintsAbout, faultsOfFiles, hasPromtool } from "../../infra/observe/check.mjs";
import { ownConfig } from "../support/fleet/repository.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { readUntil } from "../support/until.js";
import { metricsOf, scrape } from "./scrape.js";

const running = useFleet({
  models: ["simple", "accumulate", "gen-cheap"],
  configs: { simple: `${ownConfig("simple")}\nresponse_cache { enable: true }` },
  grpc: true,
  jobs: 1,
  direct: true,
  env: { BATON_METRICS_PORT: "0", BATON_ACCESS_LOG: "/dev/null" },
});
const names: ReadonlySet<string> = new Set(Object.keys(families));

async function work(): Promise<void> {
  const data = Array<number>(16).fill(1);
  const inputs = ["INPUT0", "INPUT1"].map((name) => ({ name, datatype: "INT32", shape: [1, 16], data }));
  const post = async (path: string, body: object) => {
    const answer = await fetch(`${running.url}/v2/models/${path}`, { method: "POST", body: JSON.stringify(body) });
    await answer.text();
    return answer.status;
  };
  expect(await post("simple/infer", { inputs })).toBe(200);
  expect(await post("gen-cheap/generate", { text_input: "Once", max_tokens: 3 })).toBe(200);
  expect(await post("simple/infer", {})).toBe(400);
}

/** Families whose series need more than this fleet has, with the need. Other tests show them. */
const elsewhere: Readonly<Record<string, readonly FamilyName[]>> = {
  "a card": [
    "nv_gpu_utilization",
    "nv_gpu_memory_total_bytes",
    "nv_gpu_memory_used_bytes",
    "nv_gpu_power_usage",
    "nv_gpu_power_limit",
    "nv_energy_consumption",
  ],
  keys: ["baton_auth_failures_total", "baton_keys_file_ok", "baton_budget_used_ratio"],
  "tenants in the queue": ["baton_tenant_requests", "baton_tenant_bytes"],
  "a supervisor": ["baton_supervisor_restarts_total"],
  "levels and parked requests": ["baton_queue_level_requests"],
  "a limit of Redis's memory": ["baton_redis_memory_limit_bytes"],
};

describe("the page", () => {
  it.runIf(hasPromtool())("is read by rules and alerts that promtool takes, with the tests of the alerts", async () => {
    expect(await faultsOfFiles()).toEqual([]);
  });

  it.runIf(hasPromtool())("of every declared family has no name that promtool refuses", async () => {
    const cells = new Cells();
    for (const [name, { type }] of Object.entries(families) as [FamilyName, Family][]) {
      if (type === "histogram") cells.histogram(name);
      else cells.counter(name);
    }
    expect(await complaintsAbout(cells.page())).toEqual([]);
  });

  it.each(["gateway", "worker", "jobs"] as const)("of a %s keeps to the format, with declared names", async (role) => {
    await work();
    const { gateways, workers, jobs } = running.fleet;
    const member = { gateway: gateways[0]?.member, worker: workers[0], jobs: jobs[0] }[role];
    const page = await scrape(await metricsOf(member ?? expect.fail(`there is no ${role}`)));
    const own = [...page.types.keys()].filter((name) => /^(?:baton|nv)_/.test(name));
    expect(own.filter((name) => !names.has(name))).toEqual([]);
    expect(own.length).toBeGreaterThan(15);
    if (hasPromtool()) expect(await complaintsAbout(page.text)).toEqual([]);
  });

  it("of some process has each declared family", async () => {
    await work();
    const { gateways, workers, jobs } = running.fleet;
    const members = [...gateways.map(({ member }) => member), ...workers, ...jobs];
    const without = async () => {
      const pages = await Promise.all(members.map(async (member) => scrape(await metricsOf(member))));
      const shown = new Set(pages.flatMap(({ types }) => [...types.keys()]));
      return [...names].filter((name) => !shown.has(name)).toSorted();
    };
    const expected = Object.values(elsewhere).flat().toSorted();
    // The observer's first round comes after the start.
    expect(await readUntil(without, (missing) => missing.length <= expected.length)).toEqual(expected);
  });
});
