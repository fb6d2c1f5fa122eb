/** The fleet under measurement: few of each, connected directly. (test/setup/fleet.ts puts proxies between, which cost time.) */
import { join } from "node:path";
import { Member } from "../setup/member.js";
import { startNats } from "../setup/nats.js";
import { freePort } from "../setup/port.js";
import { startRedis, type RedisServer } from "../setup/redis.js";
import { root } from "../setup/root.js";
import { cpuOf, type Cpu } from "./cpu.js";
import { pausesOf, TRACE_FLAG } from "./pauses.js";

export const parts = ["gateway", "worker I/O", "worker model", "redis", "nats"] as const;
export type Part = (typeof parts)[number];

export interface BenchFleetPlan {
  readonly folder: string;
  /** Of models. */
  readonly repository: string;
  /** That must be ready. */
  readonly models: readonly string[];
  readonly workers: number;
  /** Of the workers. */
  readonly env: Readonly<Record<string, string>>;
}

export interface BenchFleet {
  readonly port: number;
  readonly redis: RedisServer;
  /** Named worker-1, worker-2 and so on. */
  readonly workers: readonly Member[];
  /** Milliseconds so far. */
  cpu(): Record<Part, number>;
  /** Milliseconds of V8's pauses so far, of all its threads; zeros unless profiling. */
  pauses(): Record<"gateway" | "workers", number>;
  /** Batches run between two wall-clock times. */
  batches(from: number, to: number): { rows: number; ranMs: number }[];
  dispose(): Promise<void>;
}

export async function startBenchFleet(plan: BenchFleetPlan): Promise<BenchFleet> {
  const { folder } = plan;
  const redis = await startRedis(folder);
  const nats = await startNats(folder);
  const port = await freePort();
  const member = (name: string, entry: string, ready: string, env: Record<string, string>) => {
    const profile = process.env["BATON_BENCH_PROFILE"];
    const flags =
      profile === undefined
        ? []
        : ["--cpu-prof", "--cpu-prof-interval", "500", `--cpu-prof-dir=${profile}/${name}`, TRACE_FLAG];
    return new Member(
      {
        name,
        command: process.execPath,
        args: [...flags, join(root, "dist", entry)],
        env: { BATON_REDIS_URL: redis.url, BATON_NATS_URL: nats.url, ...env },
        logFile: join(folder, `${name}.log`),
      },
      ready,
    );
  };
  const gateway = member("gateway", "gateway/main.js", "gateway listening", {
    BATON_HOST: "127.0.0.1",
    BATON_HTTP_PORT: String(port),
  });
  const workers = Array.from({ length: plan.workers }, (_, i) => {
    const name = `worker-${i + 1}`;
    const env = { BATON_MODEL_REPOSITORY: plan.repository, BATON_WORKER_NAME: name, ...plan.env };
    return member(name, "worker/main.js", "worker ready", env);
  });
  await Promise.all([gateway, ...workers].map((one) => one.start()));
  await whenReady(port, plan.models);
  return {
    port,
    redis,
    workers,
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
      await Promise.all([gateway, ...workers].map((one) => one.terminate()));
      await Promise.all([redis.dispose(), nats.dispose()]);
    },
  };
}

async function whenReady(port: number, models: readonly string[]): Promise<void> {
  for (const name of models) {
    const giveUpAt = performance.now() + 20_000;
    while ((await fetch(`http://127.0.0.1:${port}/v2/models/${name}/ready`)).status !== 200) {
      if (performance.now() > giveUpAt) throw new Error(`${name} is not ready`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
