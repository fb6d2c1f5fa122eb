/**
 * The fleet under measurement: a gateway and few workers, connected to the brokers directly, and
 * the CPU time that they have used so far.
 */
import { join } from "node:path";
import type { Member } from "../../support/fleet/member.js";
import { startFleet, type FleetPlan } from "../../support/fleet/fleet.js";
import type { RunningProcess } from "../../support/brokers/process.js";
import type { RedisServer } from "../../support/brokers/redis.js";
import { cpuOf, type Cpu } from "./cpu.js";

export const parts = ["gateway", "worker I/O", "worker model", "redis", "nats"] as const;
export type Part = (typeof parts)[number];

export interface BenchFleetPlan {
  readonly folder: string;
  /** The model repository. */
  readonly repository: string;
  /** The models that must be ready. */
  readonly models: readonly string[];
  readonly workers: number;
  /** Settings of the workers. */
  readonly env: Readonly<Record<string, string>>;
  /** Settings of all processes. */
  readonly common?: Readonly<Record<string, string>>;
  /** Flags of node and V8 for gateway and workers. */
  readonly flags?: readonly string[];
  /** The checkout whose build runs, if it is another one. */
  readonly build?: string;
  /** The gateway speaks gRPC, too. */
  readonly grpc?: boolean;
}

export interface BenchFleet {
  readonly port: number;
  /** The port of gRPC; 0 if the plan has none. */
  readonly grpcPort: number;
  readonly redis: RedisServer;
  /** Named worker-1, worker-2 and so on. */
  readonly workers: readonly Member[];
  /** All processes, each with its output so far. Each is the first of its process group. */
  readonly processes: Readonly<Record<string, RunningProcess>>;
  /** Milliseconds of CPU so far. */
  cpu(): Record<Part, number>;
  /** Milliseconds of V8's pauses so far, over all threads; zeros unless profiling. */
  pauses(): Record<"gateway" | "workers", number>;
  /** The batches that ran between two wall-clock times. */
  batches(from: number, to: number): { rows: number; ranMs: number }[];
  dispose(): Promise<void>;
}

/** The default of a fleet outside a Cluster. */
export const BUCKETS = 1;
const READY_WITHIN_MS = 20_000;

export async function startBenchFleet(plan: BenchFleetPlan): Promise<BenchFleet> {
  const { folder, repository, models, workers: count, env, common, flags, build, grpc = false } = plan;
  const profile = process.env["BATON_BENCH_PROFILE"];
  const profiling = (name: string) => [
    "--cpu-prof",
    "--cpu-prof-interval",
    "500",
    `--cpu-prof-dir=${profile}/${name}`,
    TRACE_FLAG,
  ];
  const fleet = await startFleet({
    gateways: 1,
    workers: count,
    models,
    repository,
    direct: true,
    grpc,
    env: { BATON_BUCKETS: String(BUCKETS), ...common },
    workerEnv: env,
    ...(flags !== undefined && { flags: () => flags }),
    ...(profile !== undefined && { flags: profiling }),
    ...programsOf(build),
    folder,
  });
  await fleet.whenServing(READY_WITHIN_MS);
  const { redis, nats, workers } = fleet;
  const [first] = fleet.gateways;
  if (first === undefined) throw new Error("the fleet has no gateway");
  const { member: gateway, url } = first;
  return {
    port: Number(new URL(url).port),
    grpcPort: Number(first.grpc.split(":")[1] ?? 0),
    redis,
    workers,
    processes: {
      gateway: gateway.process,
      ...Object.fromEntries(workers.map(({ process: one }, i) => [`worker ${i + 1}`, one])),
      Redis: redis.process,
      NATS: nats.process,
    },
    cpu() {
      const groups = [gateway.process, redis.process, nats.process, ...workers.map((worker) => worker.process)];
      const [ofGateway, ofRedis, ofNats, ...ofWorkers] = cpuOf(groups.map(({ pid }) => pid)) as [Cpu, Cpu, Cpu];
      const sum = (of: (cpu: Cpu) => number) => (ofWorkers as Cpu[]).reduce((total, cpu) => total + of(cpu), 0);
      return {
        gateway: ofGateway.total,
        "worker I/O": sum(({ mainThreads }) => mainThreads),
        "worker model": sum(({ total, mainThreads }) => total - mainThreads),
        redis: ofRedis.total,
        nats: ofNats.total,
      };
    },
    pauses: () => ({
      gateway: pausesOf(gateway.process.lines),
      workers: workers.reduce((sum, worker) => sum + pausesOf(worker.process.lines), 0),
    }),
    batches: (from, to) =>
      workers
        .flatMap((worker) => worker.process.lines)
        .filter(
          ({ fields }) => fields["msg"] === "batch" && Number(fields["time"]) >= from && Number(fields["time"]) < to,
        )
        .map(({ fields }) => ({ rows: Number(fields["rows"]), ranMs: Number(fields["ranMs"]) })),
    async dispose() {
      // Only a process that ends by itself writes its profile.
      await Promise.all([gateway, ...workers].map((one) => one.terminate()));
      await fleet.dispose();
    },
  };
}

const programs = {
  gateway: "bundled/gateway/main.js",
  jobs: "bundled/gateway/jobs.js",
  worker: "worker/supervisor.js",
};

/** The programs of another checkout's build, for the plan of a fleet; nothing for this checkout. */
export function programsOf(build: string | undefined): Pick<FleetPlan, "programs"> {
  if (build === undefined) return {};
  const kinds = Object.entries(programs);
  return {
    programs: (name) => {
      const [, program] = kinds.find(([kind]) => name.startsWith(kind)) ?? [];
      return program === undefined ? undefined : join(build, "dist", program);
    },
  };
}

/**
 * Makes V8 print its pauses for garbage collection. Only profiled runs ask for this, because each
 * pause costs a line of output.
 */
const TRACE_FLAG = "--trace-gc";

/**
 * V8's line: `[pid:isolate] 123 ms: Scavenge 8.1 (9.4) -> 7.2 (10.4) MB, 0.52 / 0.00 ms  (…)`. The
 * first of the two times at the end is the pause.
 */
const PAUSE = /^\[\d+:0x[0-9a-f]+\].*, (\d+(?:\.\d+)?) \/ \d+(?:\.\d+)? ms/;

/** @returns milliseconds of pauses in these lines of output */
export function pausesOf(lines: readonly { readonly text: string }[]): number {
  return lines.reduce((sum, { text }) => sum + Number(PAUSE.exec(text)?.[1] ?? 0), 0);
}
