/** A scrape of a gateway and of a worker in a fleet with 100 models. */
import type { Redis } from "ioredis";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Cells } from "#shared/metrics/cells.js";
import { ModelCounts } from "../../../worker/lane/counts.js";
import { Page, metricsOf } from "../../metrics/scrape.js";
import { startFleet } from "../../support/fleet/fleet.js";
import type { Member } from "../../support/fleet/member.js";
import { copiesOfAccumulate } from "../queue/models.js";
import { cpuOf } from "../support/cpu.js";
import { median } from "../support/statistics.js";
import { asking, pause } from "../queue/window.js";

export interface PageCost {
  /** ms of the process's CPU for a scrape. */
  readonly cpuMs: number;
  readonly bytes: number;
}

export interface PagesCost {
  readonly gateway: PageCost;
  readonly worker: PageCost;
  /** CPU for the text of the worker's page, in ms: for so long the event loop stands still. */
  readonly pauseMs: number;
  /** Commands of Redis in a second with ten scrapes, over those in a second without. */
  readonly commands: number;
  readonly checked: number;
  readonly wrong: number;
}

const MODELS = 100;
const SCRAPES = 100;
const SECONDS = 7;
/** The kernel counts CPU in ticks of 10 ms, so a figure needs hundreds of milliseconds. */
const READY_MS = 60_000;

export async function measurePages(within: string): Promise<PagesCost> {
  const folder = mkdtempSync(join(within, "pages-"));
  const copies = Array.from({ length: MODELS }, (_, i) => ({ name: `copy-${i}` }));
  const repository = copiesOfAccumulate(join(folder, "models"), copies);
  const fleet = await startFleet({
    gateways: 1,
    workers: 1,
    models: copies.map(({ name }) => name),
    repository,
    direct: true,
    env: { BATON_METRICS_PORT: "0" },
    folder: join(folder, "fleet"),
  });
  try {
    await fleet.whenServing(READY_MS);
    const [gateway, worker] = [fleet.gateways[0]?.member, fleet.workers[0]];
    if (gateway === undefined || worker === undefined) throw new Error("the fleet has no gateway or no worker");
    await useAll(
      fleet.urls[0] ?? "",
      copies.map(({ name }) => name),
    );
    return await asking(fleet.redis, async (redis) => {
      const costs = [await costOf(gateway), await costOf(worker)];
      const [ofGateway, ofWorker] = costs;
      if (ofGateway === undefined || ofWorker === undefined) throw new Error("nothing was measured");
      return {
        gateway: ofGateway,
        worker: ofWorker,
        pauseMs: pauseOf(MODELS),
        commands: await commandsOfScrapes(redis, await metricsOf(gateway)),
        checked: 2 * SCRAPES,
        wrong: 0,
      };
    });
  } finally {
    await fleet.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A step for each model, so that the gateway has its series, too. */
async function useAll(url: string, models: readonly string[]): Promise<void> {
  for (const model of models) {
    const body = JSON.stringify({
      parameters: { sequence_id: 1, sequence_start: true, sequence_end: true },
      inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }],
    });
    const answer = await fetch(`${url}/v2/models/${model}/infer`, { method: "POST", body });
    if (answer.status !== 200) throw new Error(`${model}: ${answer.status} ${await answer.text()}`);
    await answer.arrayBuffer();
  }
}

/** @throws Error for a page that Prometheus would refuse */
async function costOf(member: Member): Promise<PageCost> {
  const url = await metricsOf(member);
  const read = async () => (await fetch(url)).text();
  if (new Page(await read()).samples.size === 0) throw new Error("the page is empty");
  const cpu = () => cpuOf([member.process.pid])[0]?.total ?? 0;
  const before = cpu();
  let bytes = 0;
  for (let i = 0; i < SCRAPES; i++) bytes = (await read()).length;
  return { cpuMs: (cpu() - before) / SCRAPES, bytes };
}

/** @returns ms of CPU for the text of the page of so many models */
function pauseOf(models: number): number {
  const cells = new Cells();
  const counts = Array.from({ length: models }, (_, i) => new ModelCounts({ model: `copy-${i}`, version: "1" }, cells));
  for (const { batches } of counts) batches?.ran(1, 0.1, 1);
  const times = Array.from({ length: SCRAPES }, () => {
    const before = process.cpuUsage();
    cells.page();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  });
  return median(times);
}

/** The fleet has rounds of its own, so medians of seconds are compared. */
async function commandsOfScrapes(redis: Redis, url: string): Promise<number> {
  const seconds = { idle: [] as number[], scraped: [] as number[] };
  for (let i = 0; i < SECONDS; i++) {
    seconds.idle.push(await commandsWhile(redis, () => pause(1_000)));
    const scrape = async () => {
      for (let n = 0; n < 10; n++) {
        await (await fetch(url)).text();
        await pause(100);
      }
    };
    seconds.scraped.push(await commandsWhile(redis, scrape));
  }
  return Math.max(0, median(seconds.scraped) - median(seconds.idle));
}

/** @returns how many commands Redis ran meanwhile */
async function commandsWhile(redis: Redis, act: () => Promise<unknown>): Promise<number> {
  const count = async () => Number(/total_commands_processed:(\d+)/.exec(await redis.info("stats"))?.[1] ?? 0);
  const before = await count();
  await act();
  return (await count()) - before;
}
