/**
 * A worker of a lab's lane without a model: it joins the living workers, holds its deliveries, and
 * takes over the deliveries of dead workers. The worker runs in this process, so a test ends or
 * cuts its connection instead of its process.
 */
import { Redis } from "ioredis";
import type { Bus } from "#shared/nats/connect.js";
import { RedisClocks } from "#shared/redis/clock.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import type { Taken } from "#shared/queue/work/stream.js";
import { Holdings, type Arrival, type Held } from "../../../worker/lane/holdings.js";
import { OutageGuard } from "../../../worker/lane/outage-guard.js";
import { Liveness } from "../../../worker/liveness/liveness.js";
import { announcementOf, servedModel } from "../../fixtures/served-models.js";
import { silentLog } from "../silent.js";
import { oneLane, take, type Lab, type OneLane } from "./lab.js";

export interface MemberPlan {
  readonly leaseMs?: number;
  /** For how many suspects the worker has room. */
  readonly room?: number;
  /** Address of Redis; the lab's own address, unless a proxy stands before Redis. */
  readonly url?: string;
  /** Carries calls to graves, to and from this worker. */
  readonly bus?: Bus;
}

export class LabMember {
  readonly name: string;
  readonly redis: RedisClient;
  readonly queue: OneLane;
  readonly holdings = new Holdings();
  readonly liveness: Liveness;
  /** The requests that the worker has taken over, in order. */
  readonly reclaimed: string[] = [];
  /** How often the worker learned that Redis may have given it more entries than it knows. */
  doubts = 0;
  readonly #room: number;
  #isDisposed = false;

  static async join(lab: Pick<Lab, "url" | "lane">, name: string, plan: MemberPlan = {}): Promise<LabMember> {
    const member = new LabMember(lab, name, plan);
    await whenReady(member.redis, AbortSignal.timeout(60_000));
    const announcement = announcementOf([
      { ...servedModel(lab.lane.model), version: lab.lane.version, digest: lab.lane.digest },
    ]);
    member.liveness.register({ queue: member.queue, holdings: member.holdings, intake: member });
    await member.liveness.join({ ...announcement, worker: name }, [lab.lane], 10_000);
    return member;
  }

  private constructor({ url, lane }: Pick<Lab, "url" | "lane">, name: string, plan: MemberPlan) {
    const leaseMs = plan.leaseMs ?? 1_000;
    this.name = name;
    this.#room = plan.room ?? 16;
    this.redis = connectRedis({ url: plan.url ?? url, name, log: silentLog });
    this.queue = oneLane(this.redis, lane, name);
    this.liveness = new Liveness({
      redis: this.redis,
      ...(plan.bus !== undefined && { bus: plan.bus }),
      worker: name,
      clocks: new RedisClocks(this.redis),
      outageGuard: new OutageGuard(leaseMs, performance.now()),
      leaseMs,
      buckets: 1,
      healthFile: undefined,
      log: silentLog,
    });
  }

  suspectRoom(): number {
    return this.#room - this.reclaimed.length;
  }

  doubt(): void {
    this.doubts++;
  }

  accept({ deliveries }: Taken, arrival: Arrival): void {
    this.reclaimed.push(...deliveries.map(({ request }) => request));
    this.holdings.hold(
      deliveries.map((delivery) => ({ delivery }) as Held),
      arrival,
    );
  }

  /** Reads the deliveries that are ready, and holds them. */
  async read(): Promise<void> {
    const deliveries = await take(this.queue);
    this.holdings.hold(
      deliveries.map((delivery) => ({ delivery }) as Held),
      "fresh",
    );
  }

  /** Ends the connection until `return`, as if the process were dead or its link cut. */
  vanish(): void {
    this.redis.disconnect();
  }

  async return(): Promise<void> {
    if (this.redis instanceof Redis) await this.redis.connect();
  }

  /** A second call does nothing, because the connection to Redis may no longer exist. */
  async dispose(): Promise<void> {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    if (this.redis.status === "end") await this.return();
    await this.liveness.end();
    this.redis.disconnect();
  }
}
