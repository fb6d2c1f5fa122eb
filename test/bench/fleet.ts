/** The fleet under measurement: one of each, connected directly. (test/setup/fleet.ts puts proxies between, which cost time.) */
import { join } from "node:path";
import { Member } from "../setup/member.js";
import { startNats } from "../setup/nats.js";
import { freePort } from "../setup/port.js";
import { startRedis } from "../setup/redis.js";
import { root } from "../setup/root.js";
import { cpuOf, type Cpu } from "./cpu.js";
import { benchRepository, large, tiny, tinyAtOnce } from "./models.js";

export const parts = ["gateway", "worker I/O", "worker model", "redis", "nats"] as const;
export type Part = (typeof parts)[number];

export interface BenchFleet {
  readonly port: number;
  /** Milliseconds so far. */
  cpu(): Record<Part, number>;
  /** Batches run between two wall-clock times. */
  batches(from: number, to: number): { rows: number; ranMs: number }[];
  dispose(): Promise<void>;
}

export async function startBenchFleet(folder: string): Promise<BenchFleet> {
  const redis = await startRedis(folder);
  const nats = await startNats(folder);
  const port = await freePort();
  const member = (name: string, entry: string, ready: string, env: Record<string, string>) => {
    const profile = process.env["BATON_BENCH_PROFILE"];
    const flags =
      profile === undefined ? [] : ["--cpu-prof", "--cpu-prof-interval", "500", `--cpu-prof-dir=${profile}/${name}`];
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
  const worker = member("worker", "worker/main.js", "worker ready", {
    BATON_MODEL_REPOSITORY: benchRepository(join(folder, "models")),
    BATON_LOG_LEVEL: "debug",
  });
  await Promise.all([gateway.start(), worker.start()]);
  await whenReady(port);
  const groups = [gateway.process, worker.process, redis.process, nats.process].map(({ pid }) => pid);
  return {
    port,
    cpu() {
      const [ofGateway, ofWorker, ofRedis, ofNats] = cpuOf(groups) as [Cpu, Cpu, Cpu, Cpu];
      return {
        gateway: ofGateway.total,
        "worker I/O": ofWorker.mainThreads,
        "worker model": ofWorker.total - ofWorker.mainThreads,
        redis: ofRedis.total,
        nats: ofNats.total,
      };
    },
    batches: (from, to) =>
      worker.process.lines
        .filter(
          ({ fields }) => fields["msg"] === "batch" && Number(fields["time"]) >= from && Number(fields["time"]) < to,
        )
        .map(({ fields }) => ({ rows: Number(fields["rows"]), ranMs: Number(fields["ranMs"]) })),
    async dispose() {
      await Promise.all([gateway.terminate(), worker.terminate()]);
      await Promise.all([redis.dispose(), nats.dispose()]);
    },
  };
}

async function whenReady(port: number): Promise<void> {
  for (const { name } of [large, tiny, tinyAtOnce]) {
    const giveUpAt = performance.now() + 20_000;
    while ((await fetch(`http://127.0.0.1:${port}/v2/models/${name}/ready`)).status !== 200) {
      if (performance.now() > giveUpAt) throw new Error(`${name} is not ready`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
