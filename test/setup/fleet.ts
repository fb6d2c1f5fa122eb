/**
 * A whole fleet of real processes on free ports: Redis and NATS, each reached by gateways and
 * workers through lines of their own that can be cut, and the members themselves. What is started
 * first is disposed of last.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Member } from "./member.js";
import { RunningProcess } from "./process.js";
import { startNats, type NatsServer } from "./nats.js";
import { freePort } from "./port.js";
import { Proxy } from "./proxy.js";
import { startRedis, type RedisServer } from "./redis.js";
import { makeRepository } from "./repository.js";
import { root } from "./root.js";

export interface FleetPlan {
  readonly gateways: number;
  readonly workers: number;
  readonly models: readonly string[];
  /** Those of them that can be served; all, if not said. */
  readonly serving?: readonly string[];
  readonly leaseMs?: number;
  /**
   * The members reach Redis and NATS without the lines between: nobody cuts them, and this process
   * need not carry every byte.
   */
  readonly direct?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  /** Where the logs go and stay; without it they go with the fleet, unless KEEP_LOGS is set. */
  readonly folder?: string;
}

export interface Gateway {
  readonly member: Member;
  readonly url: string;
}

export interface Fleet {
  readonly redis: RedisServer;
  readonly nats: NatsServer;
  readonly lines: { readonly gatewayRedis: Proxy; readonly workerRedis: Proxy; readonly nats: Proxy };
  readonly gateways: readonly Gateway[];
  readonly workers: readonly Member[];
  readonly leaseMs: number;
  readonly folder: string;
  readonly urls: readonly string[];
  addWorker(): Promise<Member>;
  /**
   * One more process over the same brokers and models, which need not live; it ends with the fleet.
   */
  launch(entry: string, env: Readonly<Record<string, string>>): RunningProcess;
  /** Resolves when every gateway says that every model is ready. */
  whenServing(timeoutMs?: number): Promise<void>;
  dispose(): Promise<void>;
}

export async function startFleet(plan: FleetPlan): Promise<Fleet> {
  const unbuilt = process.env["BATON_BUILD_FAILED"];
  if (unbuilt !== undefined) throw new Error(`nothing to start: ${unbuilt}`);
  const { leaseMs = 1_000, models, direct = false } = plan;
  const folder = plan.folder ?? mkdtempSync(join(tmpdir(), "baton-test-"));
  const undo: (() => Promise<unknown> | void)[] = [];
  if (plan.folder === undefined && process.env["KEEP_LOGS"] === undefined)
    undo.push(() => rmSync(folder, { recursive: true, force: true }));
  const dispose = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  const opened = async <T extends { dispose(): Promise<void> }>(opening: Promise<T>): Promise<T> => {
    const one = await opening;
    undo.push(() => one.dispose());
    return one;
  };

  try {
    const repository = makeRepository(join(folder, "models"), models);
    const redis = await opened(startRedis(folder));
    const nats = await opened(startNats(folder));
    const lines = {
      gatewayRedis: await opened(Proxy.start(redis.port)),
      workerRedis: await opened(Proxy.start(redis.port)),
      nats: await opened(Proxy.start(nats.port)),
    };
    const portOf = (line: Proxy, server: { readonly port: number }) => (direct ? server.port : line.port);
    const member = (name: string, entry: string, ready: string, env: Record<string, string>) => {
      const launch = {
        name,
        command: process.execPath,
        args: [join(root, "dist", entry)],
        env: { BATON_NATS_URL: `nats://127.0.0.1:${portOf(lines.nats, nats)}`, ...plan.env, ...env },
        logFile: join(folder, `${name}.log`),
      };
      const made = new Member(launch, ready);
      undo.push(async () => {
        if (made.lives.length > 0) await made.kill();
      });
      return made;
    };
    const addWorker = async () => {
      const worker = member(`worker-${workers.length + 1}`, "worker/main.js", "worker ready", {
        BATON_REDIS_URL: `redis://127.0.0.1:${portOf(lines.workerRedis, redis)}`,
        BATON_MODEL_REPOSITORY: repository,
        BATON_WORKER_NAME: `worker-${workers.length + 1}`,
        BATON_LEASE_MS: String(leaseMs),
      });
      workers.push(worker);
      await worker.start();
      return worker;
    };
    const addGateway = async () => {
      const port = await freePort();
      const gateway = member(`gateway-${gateways.length + 1}`, "gateway/main.js", "gateway listening", {
        BATON_REDIS_URL: `redis://127.0.0.1:${portOf(lines.gatewayRedis, redis)}`,
        BATON_HOST: "127.0.0.1",
        BATON_HTTP_PORT: String(port),
      });
      gateways.push({ member: gateway, url: `http://127.0.0.1:${port}` });
      await gateway.start();
    };
    const launch = (entry: string, env: Readonly<Record<string, string>>) => {
      const brokers = { BATON_REDIS_URL: redis.url, BATON_NATS_URL: `nats://127.0.0.1:${nats.port}` };
      const started = new RunningProcess({
        name: entry,
        command: process.execPath,
        args: [join(root, "dist", entry)],
        env: { ...plan.env, ...brokers, BATON_MODEL_REPOSITORY: repository, ...env },
        logFile: join(folder, "launched.log"),
      });
      undo.push(async () => {
        await started.kill();
      });
      return started;
    };
    const workers: Member[] = [];
    const gateways: Gateway[] = [];
    const starts: Promise<unknown>[] = [];
    for (let i = 0; i < plan.gateways; i++) starts.push(addGateway());
    for (let i = 0; i < plan.workers; i++) starts.push(addWorker());
    await settleAll(starts);

    return {
      redis,
      nats,
      lines,
      gateways,
      workers,
      leaseMs,
      folder,
      urls: gateways.map((gateway) => gateway.url),
      addWorker,
      launch,
      whenServing: (timeoutMs = 30_000) => whenServing(gateways, plan.serving ?? models, timeoutMs),
      dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** Waits for all before failing for one, so that dispose finds everything that was started. */
async function settleAll(starts: readonly Promise<unknown>[]): Promise<void> {
  for (const result of await Promise.allSettled(starts)) if (result.status === "rejected") throw result.reason;
}

async function whenServing(gateways: readonly Gateway[], models: readonly string[], timeoutMs: number): Promise<void> {
  const giveUpAt = performance.now() + timeoutMs;
  for (const { url } of gateways) {
    for (const model of models) {
      while ((await status(`${url}/v2/models/${model}/ready`)) !== 200) {
        if (performance.now() > giveUpAt) throw new Error(`${model} not ready at ${url} within ${timeoutMs} ms`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }
}

async function status(url: string): Promise<number> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(2_000) });
    await answer.arrayBuffer();
    return answer.status;
  } catch {
    return 0; // not listening yet; the caller asks again until its time is up
  }
}
