/** The measurements of what seeing costs: a row each. */
import type { Scenarios } from "../support/rounds.js";
import type { Wanted } from "../support/statistics.js";
import { measureBeats, type BeatsCost } from "./beats.js";
import { measureCounting, type CountingCost } from "./counting.js";
import { measurePages, type PagesCost } from "./pages.js";
import { openTraced, type Kind, type TracedCost, type TracedPlan } from "./traced.js";

export interface ObserveRound {
  counting: CountingCost;
  pages: PagesCost;
  beats: BeatsCost;
  traced: TracedCost;
}

export const observeNames: readonly (keyof ObserveRound)[] = ["counting", "pages", "beats", "traced"];

const moreThanPlain =
  (kind: Exclude<Kind, "plain">) =>
  ({ traced }: Partial<ObserveRound>) =>
    traced && traced[kind] - traced.plain;

const MB = 1_500_000;

export const observeFigures: readonly Wanted<ObserveRound>[] = [
  { name: "counting, all processes: µs/step", most: 1, of: ({ counting }) => counting?.stepUs },
  { name: "counting: µs/token", most: 0.5, of: ({ counting }) => counting?.tokenUs },
  { name: "scrape of a gateway with 100 models: CPU, ms", most: 20, of: ({ pages }) => pages?.gateway.cpuMs },
  { name: "  bytes", most: MB, of: ({ pages }) => pages?.gateway.bytes },
  { name: "scrape of a worker with 100 models: CPU, ms", most: 20, of: ({ pages }) => pages?.worker.cpuMs },
  { name: "  bytes", most: MB, of: ({ pages }) => pages?.worker.bytes },
  { name: "  pause of its event loop, ms of CPU", most: 10, of: ({ pages }) => pages?.pauseMs },
  { name: "  commands of Redis for 10 scrapes, over idle", most: 2, of: ({ pages }) => pages?.commands },
  { name: "a heartbeat: its script in Redis, µs", of: ({ beats }) => beats?.withoutUs },
  {
    name: "  more with the reports of 10 busy models",
    most: 5,
    of: ({ beats }) => beats && beats.withUs - beats.withoutUs,
  },
  { name: "lstm-128, 64 connections: CPU of all servers, µs/step", of: ({ traced }) => traced?.plain },
  { name: "  more with traces at 0.01", most: 1, of: moreThanPlain("sampled") },
  { name: "  more with traces at 1", most: 100, of: moreThanPlain("traced") },
  { name: "  bytes of traces at 1, per step", of: ({ traced }) => traced?.traceBytes },
  { name: "  more with the access log", most: 6, of: moreThanPlain("logged") },
];

export interface ObservePlan extends TracedPlan {
  readonly names: readonly (keyof ObserveRound)[];
}

export async function observeScenarios(plan: ObservePlan): Promise<Scenarios<ObserveRound>> {
  const { folder, names } = plan;
  const traced = names.includes("traced") ? await openTraced(plan) : undefined;
  return {
    counting: () => Promise.resolve(measureCounting()),
    pages: () => measurePages(folder),
    beats: () => measureBeats(folder),
    traced: () => traced?.() ?? Promise.reject(new Error("not opened")),
  };
}
