/**
 * A whole fleet of real processes on free ports: Redis and NATS, gateways and workers. Gateways and
 * workers reach the brokers over lines of their own, which a test can cut. The members stop before
 * the brokers.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestCertificates } from "../certificates.js";
import { startGuardedNats, startNats, type NatsServer } from "../brokers/nats.js";
import type { RunningProcess } from "../brokers/process.js";
import type { RedisServer } from "../brokers/redis.js";
import type { Member } from "./member.js";
import { Members, type Gateway, type MembersPlan } from "./members.js";
import { Proxy } from "./proxy.js";
import { makeRepository } from "./repository.js";
import { singleStore, type Store } from "./store.js";

export type { Gateway } from "./members.js";

export interface FleetPlan extends MembersPlan {
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
  /** A Redis that already runs. If absent, the fleet starts a single server. */
  readonly store?: Store;
  /** NATS requires credentials of every client, and takes WebSockets. */
  readonly guarded?: boolean;
  /** Members reach both brokers by TLS, each with a certificate. Needs `direct` and `guarded`. */
  readonly certificates?: TestCertificates;
  /**
   * A folder for the logs, which stays. If absent, the fleet removes its logs at its end, unless
   * KEEP_LOGS is set.
   */
  readonly folder?: string;
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

export async function startFleet(plan: FleetPlan): Promise<Fleet> {
  const { gateways = 1, workers = 1, jobs = 0, models, configs = {} } = plan;
  const unbuilt = process.env["BATON_BUILD_FAILED"];
  if (unbuilt !== undefined && gateways + workers + jobs > 0) throw new Error(`nothing to start: ${unbuilt}`);
  const folder = plan.folder ?? mkdtempSync(join(tmpdir(), "baton-test-"));
  const opened = new Opened();
  if (plan.folder === undefined && process.env["KEEP_LOGS"] === undefined)
    opened.onDispose(() => rmSync(folder, { recursive: true, force: true }));

  try {
    const repository = plan.repository ?? makeRepository(join(folder, "models"), models, configs);
    const { store, nats, lines } = await startBrokers(plan, folder, opened);
    const natsUrl = plan.direct === true ? nats.url : `nats://127.0.0.1:${lines.nats.port}`;
    const members = new Members(plan, { folder, repository, store, nats, natsUrl });
    opened.onDispose(() => members.kill());
    await members.start({ gateways, workers, jobs });

    return {
      store,
      redis: store.servers[0],
      nats,
      lines,
      gateways: members.gateways,
      workers: members.workers,
      jobs: members.jobs,
      leaseMs: members.leaseMs,
      folder,
      models,
      configs,
      urls: members.gateways.map((gateway) => gateway.url),
      addWorker: (env) => members.addWorker(env),
      launch: (entry, env) => members.launch(entry, env),
      whenServing: (timeoutMs = 60_000) => members.whenServing(plan.serving ?? models, timeoutMs),
      dispose: () => opened.dispose(),
    };
  } catch (error) {
    await opened.dispose();
    throw error;
  }
}

/** Starts NATS, and Redis unless the plan has a store, and opens the members' lines. */
async function startBrokers(plan: FleetPlan, folder: string, opened: Opened) {
  const starts = [
    opened.add(
      plan.store === undefined
        ? singleStore(folder, plan.direct ?? false, plan.certificates)
        : Promise.resolve(plan.store),
    ),
    opened.add<NatsServer>(plan.guarded === true ? startGuardedNats(folder, plan.certificates) : startNats(folder)),
  ] as const;
  // Waits for both before it throws an error of any, so that `dispose` finds every process.
  await Promise.allSettled(starts);
  const [store, nats] = await Promise.all(starts);
  const [[gatewayRedis], [workerRedis]] = [store.lines.gatewayRedis, store.lines.workerRedis];
  return { store, nats, lines: { gatewayRedis, workerRedis, nats: await opened.add(Proxy.start(nats.port)) } };
}

/** The opened parts of a fleet, which close in reverse order. */
class Opened {
  readonly #undo: (() => Promise<unknown> | void)[] = [];

  async add<T extends { dispose(): Promise<void> }>(opening: Promise<T>): Promise<T> {
    const one = await opening;
    this.onDispose(() => one.dispose());
    return one;
  }

  onDispose(step: () => Promise<unknown> | void): void {
    this.#undo.push(step);
  }

  async dispose(): Promise<void> {
    for (const step of this.#undo.splice(0).reverse()) await step();
  }
}
