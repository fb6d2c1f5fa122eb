/**
 * A whole fleet of real processes on free ports: Redis and NATS, gateways and workers. Gateways and
 * workers reach the brokers over lines of their own, which a test can cut. The members stop before
 * the brokers.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readUntil } from "../until.js";
import { Member } from "./member.js";
import { RunningProcess } from "./process.js";
import { startGuardedNats, startNats, type NatsServer } from "./nats.js";
import { profile } from "./profile.js";
import { freePort } from "./port.js";
import { Proxy } from "./proxy.js";
import type { RedisServer } from "./redis.js";
import { makeRepository } from "./repository.js";
import { root } from "./root.js";
import { singleStore, type Store } from "./store.js";

export interface FleetPlan {
  /** 1 if absent. */
  readonly gateways?: number;
  /** 1 if absent. */
  readonly workers?: number;
  /** Jobs processes; 0 if absent. */
  readonly jobs?: number;
  /** Names of models to copy into the fleet's own repository. */
  readonly models: readonly string[];
  /** A repository to use unchanged, instead of such a copy. */
  readonly repository?: string;
  /** The whole `config.pbtxt` of some of the copied models, instead of their own. */
  readonly configs?: Readonly<Record<string, string>>;
  /** The models that workers can serve. If absent, all of `models`. */
  readonly serving?: readonly string[];
  readonly leaseMs?: number;
  /** A Redis that already runs. If absent, the fleet starts a single server. */
  readonly store?: Store;
  /**
   * Members reach Redis and NATS directly: no test can cut the lines, and this process need not
   * carry every byte.
   */
  readonly direct?: boolean;
  /** NATS requires credentials of every client, and takes WebSockets. */
  readonly guarded?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  /** Settings for workers only. */
  readonly workerEnv?: Readonly<Record<string, string>>;
  /** Settings for jobs processes only. */
  readonly jobsEnv?: Readonly<Record<string, string>>;
  /** Flags of Node for the member of this name. */
  readonly flags?: (member: string) => readonly string[];
  /**
   * The program of the member of this name. If undefined, the member runs the program of this
   * build.
   */
  readonly programs?: (member: string) => string | undefined;
  /**
   * A folder for the logs, which stays. If absent, the fleet removes its logs at its end, unless
   * KEEP_LOGS is set.
   */
  readonly folder?: string;
}

export interface Gateway {
  readonly member: Member;
  readonly url: string;
}

export interface Fleet {
  readonly store: Store;
  /** The first server of the store, and its only server unless the plan has another store. */
  readonly redis: RedisServer;
  readonly nats: NatsServer;
  readonly lines: { readonly gatewayRedis: Proxy; readonly workerRedis: Proxy; readonly nats: Proxy };
  readonly gateways: readonly Gateway[];
  readonly workers: readonly Member[];
  readonly jobs: readonly Member[];
  readonly leaseMs: number;
  readonly folder: string;
  /** Names of the models in the plan. */
  readonly models: readonly string[];
  /** Configurations that the plan has for some models, instead of their own. */
  readonly configs: Readonly<Record<string, string>>;
  readonly urls: readonly string[];
  /**
   * Starts another worker, with these settings over the other workers' settings. Resolves when the
   * worker is ready.
   */
  addWorker(env?: Readonly<Record<string, string>>): Promise<Member>;
  /**
   * Starts another process on the same brokers and models. The process ends by itself, or with the
   * fleet.
   */
  launch(entry: string, env: Readonly<Record<string, string>>): RunningProcess;
  /** Resolves when every gateway says that every model is ready. */
  whenServing(timeoutMs?: number): Promise<void>;
  dispose(): Promise<void>;
}

/** Workers that start side by side. */
const STARTED_TOGETHER = 8;

export async function startFleet(plan: FleetPlan): Promise<Fleet> {
  const unbuilt = process.env["BATON_BUILD_FAILED"];
  const { gateways: gatewayCount = 1, workers: workerCount = 1, jobs: jobsCount = 0 } = plan;
  if (unbuilt !== undefined && gatewayCount + workerCount + jobsCount > 0)
    throw new Error(`nothing to start: ${unbuilt}`);
  const { leaseMs = 1_000, models, direct = false, flags = () => [], programs = () => undefined } = plan;
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
    const repository = plan.repository ?? makeRepository(join(folder, "models"), models, plan.configs);
    const starting = {
      store: opened(plan.store === undefined ? singleStore(folder, direct) : Promise.resolve(plan.store)),
      nats: opened<NatsServer>(plan.guarded === true ? startGuardedNats(folder) : startNats(folder)),
    };
    await settleAll(Object.values(starting));
    const [store, nats] = [await starting.store, await starting.nats];
    const [redis] = store.servers;
    const [[gatewayRedis], [workerRedis]] = [store.lines.gatewayRedis, store.lines.workerRedis];
    const lines = { gatewayRedis, workerRedis, nats: await opened(Proxy.start(nats.port)) };
    const natsUrl = direct ? nats.url : `nats://127.0.0.1:${lines.nats.port}`;
    const kills: (() => Promise<unknown>)[] = [];
    undo.push(() => settleAll(kills.map((kill) => kill())));
    const member = (name: string, entry: string, ready: string, env: Record<string, string>) => {
      const launch = {
        name,
        command: process.execPath,
        args: [...flags(name), programs(name) ?? join(root, "dist", entry)],
        env: { BATON_NATS_URL: natsUrl, ...nats.guard?.env, ...profile, ...store.env, ...plan.env, ...env },
        logFile: join(folder, `${name}.log`),
      };
      const made = new Member(launch, ready);
      kills.push(async () => {
        if (made.lives.length > 0) await made.kill();
      });
      return made;
    };
    const addWorker = async (env: Readonly<Record<string, string>> = {}) => {
      const worker = member(`worker-${workers.length + 1}`, "worker/supervisor.js", "worker ready", {
        BATON_REDIS_URL: store.urls.worker,
        BATON_MODEL_REPOSITORY: repository,
        BATON_WORKER_NAME: `worker-${workers.length + 1}`,
        BATON_LEASE_MS: String(leaseMs),
        ...plan.workerEnv,
        ...env,
      });
      workers.push(worker);
      await worker.start();
      return worker;
    };
    const addGateway = async () => {
      const port = await freePort();
      const gateway = member(`gateway-${gateways.length + 1}`, "bundled/gateway/main.js", "gateway listening", {
        BATON_REDIS_URL: store.urls.gateway,
        BATON_HOST: "127.0.0.1",
        BATON_HTTP_PORT: String(port),
      });
      gateways.push({ member: gateway, url: `http://127.0.0.1:${port}` });
      await gateway.start();
    };
    const launch = (entry: string, env: Readonly<Record<string, string>>) => {
      const brokers = { BATON_REDIS_URL: direct ? store.urls.worker : redis.url, BATON_NATS_URL: nats.url };
      const started = new RunningProcess({
        name: entry,
        command: process.execPath,
        args: [join(root, "dist", entry)],
        env: { ...profile, ...store.env, ...plan.env, ...brokers, BATON_MODEL_REPOSITORY: repository, ...env },
        logFile: join(folder, "launched.log"),
      });
      kills.push(() => started.kill());
      return started;
    };
    const addJobs = async () => {
      const one = member(`jobs-${jobs.length + 1}`, "bundled/gateway/jobs.js", "jobs ready", {
        BATON_REDIS_URL: store.urls.gateway,
        ...plan.jobsEnv,
      });
      jobs.push(one);
      await one.start();
    };
    const jobs: Member[] = [];
    const workers: Member[] = [];
    const gateways: Gateway[] = [];
    const gatewayStarts = [
      ...Array.from({ length: gatewayCount }, () => addGateway()),
      ...Array.from({ length: jobsCount }, () => addJobs()),
    ];
    // If more started at a time, they would wait for CPU longer than a member may take to be ready.
    for (let i = 0; i < workerCount; i += STARTED_TOGETHER) {
      const some = Math.min(STARTED_TOGETHER, workerCount - i);
      await settleAll([...gatewayStarts, ...Array.from({ length: some }, () => addWorker())]);
    }
    await settleAll(gatewayStarts);

    return {
      store,
      redis,
      nats,
      lines,
      gateways,
      workers,
      jobs,
      leaseMs,
      folder,
      models,
      configs: plan.configs ?? {},
      urls: gateways.map((gateway) => gateway.url),
      addWorker,
      launch,
      whenServing: (timeoutMs = 60_000) => whenServing(gateways, plan.serving ?? models, timeoutMs),
      dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** Waits for all starts before it throws an error of any, so that `dispose` finds every process. */
async function settleAll(starts: readonly Promise<unknown>[]): Promise<void> {
  for (const result of await Promise.allSettled(starts)) if (result.status === "rejected") throw result.reason;
}

async function whenServing(gateways: readonly Gateway[], models: readonly string[], timeoutMs: number): Promise<void> {
  const looks = gateways.flatMap(({ url }) =>
    models.map(async (model) => {
      const ready = () => status(`${url}/v2/models/${model}/ready`);
      const last = await readUntil(ready, (said) => said === 200, { patienceMs: timeoutMs });
      if (last !== 200) throw new Error(`${model} not ready at ${url} within ${timeoutMs} ms`);
    }),
  );
  await settleAll(looks);
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
