/** A real Prometheus follows a fleet whose workers are killed, by the gateway's list of targets. */
import { expect, it } from "vitest";
import { hasPrometheus, startPrometheus } from "../../../infra/observe/prometheus.mjs";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { until } from "../../support/until.js";
import { nth } from "../pace.js";

const KILLS = 4;
const running = useFleet({
  models: ["simple"],
  gateways: 2,
  workers: 3,
  jobs: 1,
  env: { BATON_METRICS_PORT: "0" },
});

interface Target {
  readonly labels: { readonly baton_process: string };
}

it.runIf(hasPrometheus())("scrapes every process that lives, without an error", { timeout: 180_000 }, async () => {
  const prometheus = await startPrometheus({ gateway: running.url });
  const named = async (): Promise<string[]> => {
    const answer = await fetch(`${running.url}/v2/fleet/targets`);
    return ((await answer.json()) as readonly Target[]).map(({ labels }) => labels.baton_process).toSorted();
  };
  const scraped = async () =>
    (await prometheus.query("up == 1")).map(({ metric }) => metric["instance"] ?? "").toSorted();
  const allAreUp = async () => {
    const [names, up] = await Promise.all([named(), scraped()]);
    return names.length === 6 && names.join() === up.join();
  };
  try {
    await until(prometheus.isReady);
    await until(allAreUp);
    const first = await named();
    for (let i = 0; i < KILLS; i++) {
      await nth(running.fleet.workers, i % 2).restart();
      await until(allAreUp);
    }
    const last = await named();
    const lasting = first.filter((name) => last.includes(name));
    expect(lasting).toHaveLength(4);
    const worst = new Map(
      (await prometheus.query("min_over_time(up[10m])")).map(({ metric, value }) => [metric["instance"], value]),
    );
    expect(last.map((name) => [name, worst.get(name)])).toEqual(last.map((name) => [name, 1]));
    expect(await prometheus.refusedSamples()).toBe(0);
    expect(prometheus.complaints()).toEqual([]);
  } finally {
    await prometheus.stop();
  }
});
