/**
 * The processes of a fleet, over its brokers: starts gateways, workers and jobs processes with the
 * settings of each kind, and ends all together.
 */
import { join } from "node:path";
import type { NatsRole } from "../../../gateway/subscriptions/nats-roles.js";
import type { NatsServer } from "../brokers/nats.js";
import { freePort } from "../brokers/port.js";
import { RunningProcess } from "../brokers/process.js";
import { redisUser } from "../brokers/redis-users.js";
import { readUntil } from "../until.js";
import { Member } from "./member.js";
import { profile } from "./profile.js";
import { root } from "./root.js";
import type { Store } from "./store.js";

/** Settings of processes. */
type Env = Readonly<Record<string, string>>;

export interface MembersPlan {
  /** 1,000 if absent. */
  readonly leaseMs?: number;
  /**
   * Members reach Redis and NATS directly: no test can cut the lines, and this process need not
   * carry every byte.
   */
  readonly direct?: boolean;
  /** Gateways speak gRPC, too. */
  readonly grpc?: boolean;
  readonly env?: Env;
  /** Settings for workers only. */
  readonly workerEnv?: Env;
  /** Settings for jobs processes only. */
  readonly jobsEnv?: Env;
  /** Flags of Node for the member of this name. */
  readonly flags?: (member: string) => readonly string[];
  /**
   * The program of the member of this name. If undefined, the member runs the program of this
   * build.
   */
  readonly programs?: (member: string) => string | undefined;
}

/** The surroundings of the members. */
export interface Site {
  /** The folder of the logs. */
  readonly folder: string;
  /** The folder of the models. */
  readonly repository: string;
  readonly store: Store;
  readonly nats: NatsServer;
  /** `BATON_NATS_URL` of members. */
  readonly natsUrl: string;
}

export interface Gateway {
  readonly member: Member;
  readonly url: string;
  /** Host and port of gRPC; empty if the plan has none. */
  readonly grpc: string;
}

/** Workers that start side by side. */
const STARTED_TOGETHER = 8;

export class Members {
  readonly gateways: Gateway[] = [];
  readonly workers: Member[] = [];
  readonly jobs: Member[] = [];
  readonly leaseMs: number;
  readonly #plan: MembersPlan;
  readonly #site: Site;
  readonly #kills: (() => Promise<unknown>)[] = [];

  constructor(plan: MembersPlan, site: Site) {
    this.leaseMs = plan.leaseMs ?? 1_000;
    this.#plan = plan;
    this.#site = site;
  }

  /** Starts so many of each kind. Resolves when all are ready. */
  async start({ gateways, workers, jobs }: Record<"gateways" | "workers" | "jobs", number>): Promise<void> {
    const others = [
      ...Array.from({ length: gateways }, () => this.#addGateway()),
      ...Array.from({ length: jobs }, () => this.#addJobs()),
    ];
    // If more started at a time, they would wait for CPU longer than a member may take to be ready.
    for (let i = 0; i < workers; i += STARTED_TOGETHER) {
      const some = Math.min(STARTED_TOGETHER, workers - i);
      await settleAll([...others, ...Array.from({ length: some }, () => this.addWorker())]);
    }
    await settleAll(others);
  }

  /** As `addWorker` of `Fleet`. */
  async addWorker(env: Env = {}): Promise<Member> {
    const name = `worker-${this.workers.length + 1}`;
    const worker = this.#make("worker", name, "worker/supervisor.js", "worker ready", {
      BATON_REDIS_URL: this.#site.store.urls.worker,
      BATON_MODEL_REPOSITORY: this.#site.repository,
      BATON_WORKER_NAME: name,
      BATON_LEASE_MS: String(this.leaseMs),
      ...this.#plan.workerEnv,
      ...env,
    });
    this.workers.push(worker);
    await worker.start();
    return worker;
  }

  /** As `launch` of `Fleet`. */
  launch(entry: string, env: Env): RunningProcess {
    const { folder, nats, repository, store } = this.#site;
    const redisUrl = this.#plan.direct === true ? store.urls.worker : store.servers[0].url;
    const brokers = { BATON_REDIS_URL: redisUrl, BATON_NATS_URL: nats.url, BATON_HOST: "127.0.0.1" };
    const started = new RunningProcess({
      name: entry,
      command: process.execPath,
      args: [join(root, "dist", entry)],
      env: {
        ...redisUser(roleOf(entry), folder),
        ...profile,
        ...store.env,
        ...this.#plan.env,
        ...brokers,
        BATON_MODEL_REPOSITORY: repository,
        ...env,
      },
      logFile: join(folder, "launched.log"),
    });
    this.#kills.push(() => started.kill());
    return started;
  }

  /** Resolves when every gateway says that each of these models is ready. */
  async whenServing(models: readonly string[], timeoutMs: number): Promise<void> {
    const looks = this.gateways.flatMap(({ url }) =>
      models.map(async (model) => {
        const ready = () => status(`${url}/v2/models/${model}/ready`);
        const last = await readUntil(ready, (said) => said === 200, { patienceMs: timeoutMs });
        if (last !== 200) throw new Error(`${model} not ready at ${url} within ${timeoutMs} ms`);
      }),
    );
    await settleAll(looks);
  }

  async kill(): Promise<void> {
    await settleAll(this.#kills.map((kill) => kill()));
  }

  async #addGateway(): Promise<void> {
    const [port, grpcPort] = await Promise.all([freePort(), this.#plan.grpc === true ? freePort() : "off"]);
    const gateway = this.#make(
      "gateway",
      `gateway-${this.gateways.length + 1}`,
      "bundled/gateway/main.js",
      "gateway listening",
      {
        BATON_REDIS_URL: this.#site.store.urls.gateway,
        BATON_HOST: "127.0.0.1",
        BATON_HTTP_PORT: String(port),
        BATON_GRPC_PORT: String(grpcPort),
      },
    );
    const grpc = grpcPort === "off" ? "" : `127.0.0.1:${grpcPort}`;
    this.gateways.push({ member: gateway, url: `http://127.0.0.1:${port}`, grpc });
    await gateway.start();
  }

  async #addJobs(): Promise<void> {
    const one = this.#make("jobs", `jobs-${this.jobs.length + 1}`, "bundled/gateway/jobs.js", "jobs ready", {
      BATON_REDIS_URL: this.#site.store.urls.gateway,
      ...this.#plan.jobsEnv,
    });
    this.jobs.push(one);
    await one.start();
  }

  #make(role: NatsRole, name: string, entry: string, ready: string, env: Env): Member {
    const { flags, programs, env: common } = this.#plan;
    const { folder, nats, natsUrl, store } = this.#site;
    const users = { ...nats.guard?.env[role], ...redisUser(role, folder) };
    const launch = {
      name,
      command: process.execPath,
      args: [...(flags?.(name) ?? []), programs?.(name) ?? join(root, "dist", entry)],
      env: { BATON_NATS_URL: natsUrl, ...users, ...profile, ...store.env, ...common, ...env },
      logFile: join(folder, `${name}.log`),
    };
    const made = new Member(launch, ready);
    this.#kills.push(async () => {
      if (made.lives.length > 0) await made.kill();
    });
    return made;
  }
}

function roleOf(entry: string): NatsRole {
  if (entry.startsWith("worker/")) return "worker";
  return entry.endsWith("jobs.js") ? "jobs" : "gateway";
}

/** Waits for all starts before it throws an error of any, so that `kill` finds every process. */
async function settleAll(starts: readonly Promise<unknown>[]): Promise<void> {
  for (const result of await Promise.allSettled(starts)) if (result.status === "rejected") throw result.reason;
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
