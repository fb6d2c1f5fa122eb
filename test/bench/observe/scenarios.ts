/** The measurements of what seeing costs: a row each. */
import type { Scenarios } from "../support/rounds.js";
import type { Wanted } from "../support/statistics.js";
import { measureBeats, type BeatsCost } from "./beats.js";
import { measureCounting, type CountingCost } from "./counting.js";
import { measureLogging, type LoggingCost } from "./logging.js";
import { measurePages, type PagesCost } from "./pages.js";
import { openReceivers, type Manner, type ReceiversCost } from "./receivers.js";
import { measureTracing, type TracingCost } from "./tracing.js";
import { openTraced, type Kind, type TracedCost, type TracedPlan } from "./traced.js";

export interface ObserveRound {
  counting: CountingCost;
  pages: PagesCost;
  beats: BeatsCost;
  tracing: TracingCost;
  logging: LoggingCost;
  traced: TracedCost;
  receivers: ReceiversCost;
}

export const observeNames: readonly (keyof ObserveRound)[] = [
  "counting",
  "tracing",
  "logging",
  "pages",
  "beats",
  "traced",
  "receivers",
];

const moreThanPlain =
  (kind: Exclude<Kind, "plain">) =>
  ({ traced }: Partial<ObserveRound>) =>
    traced && traced[kind] - traced.plain;

/** How much worse a latency is beside such a receiver than beside one that works. */
const besideReceiver =
  (manner: Exclude<Manner, "takes">, of: "p50" | "p99") =>
  ({ receivers }: Partial<ObserveRound>) =>
    receivers && receivers[manner][of] / receivers.takes[of];

const receiverFigures = (["hangs", "refuses", "gone"] as const).flatMap((manner) =>
  (["p50", "p99"] as const).map((of) => ({
    name: `  ${of} while the receiver ${manner === "gone" ? "is gone" : manner}, ÷ that`,
    most: 1.1,
    of: besideReceiver(manner, of),
  })),
);

const MB = 1_500_000;

export const observeFigures: readonly Wanted<ObserveRound>[] = [
  { name: "counting, all processes: µs/step", most: 1, of: ({ counting }) => counting?.stepUs },
  { name: "counting: µs/token", most: 0.5, of: ({ counting }) => counting?.tokenUs },
  { name: "tracing, counted: µs/step with no request sampled", of: ({ tracing }) => tracing?.noneUs },
  { name: "  at 0.01", most: 1, of: ({ tracing }) => tracing?.someUs },
  { name: "  at 1", most: 100, of: ({ tracing }) => tracing?.allUs },
  { name: "access log, counted: µs/request", most: 6, of: ({ logging }) => logging?.requestUs },
  { name: "  bytes of a line", of: ({ logging }) => logging?.lineBytes },
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
  {
    name: "all traced, a fifth of the load: p50 while the receiver takes, ms",
    of: ({ receivers }) => receivers?.takes.p50,
  },
  { name: "  p99, ms", of: ({ receivers }) => receivers?.takes.p99 },
  ...receiverFigures,
];

export interface ObservePlan extends TracedPlan {
  readonly names: readonly (keyof ObserveRound)[];
}

export async function observeScenarios(plan: ObservePlan): Promise<Scenarios<ObserveRound>> {
  const { folder, names } = plan;
  const traced = names.includes("traced") ? await openTraced(plan) : undefined;
  const receivers = names.includes("receivers") ? await openReceivers(plan) : undefined;
  return {
    counting: () => Promise.resolve(measureCounting()),
    tracing: measureTracing,
    logging: () => measureLogging(folder),
    pages: () => measurePages(folder),
    beats: () => measureBeats(folder),
    traced: () => traced?.() ?? Promise.reject(new Error("not opened")),
    receivers: () => receivers?.() ?? Promise.reject(new Error("not opened")),
  };
}
