/**
 * A worker of a lab's lane without a model: it joins the living, holds what it is given, and takes
 * over what others leave. Its process is this one, so it dies and is cut off by its connection.
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
  /** How many suspects it has room for. */
  readonly room?: number;
  /** Where Redis is reached; the lab's own address unless a proxy stands before it. */
  readonly url?: string;
  /** Where it calls others to graves, and is called. */
  readonly bus?: Bus;
}

export class LabMember {
  readonly name: string;
  readonly redis: RedisClient;
  readonly queue: OneLane;
  readonly holdings = new Holdings();
  readonly liveness: Liveness;
  /** The requests that it has taken over, in order. */
  readonly reclaimed: string[] = [];
  /** How often it was told that Redis may have given it more than it knows. */
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

  /** Reads what is ready, and holds it. */
  async read(): Promise<void> {
    const deliveries = await take(this.queue);
    this.holdings.hold(
      deliveries.map((delivery) => ({ delivery }) as Held),
      "fresh",
    );
  }

  /** Loses its connection, as when its process has died or its link is cut, until `return`. */
  vanish(): void {
    this.redis.disconnect();
  }

  async return(): Promise<void> {
    if (this.redis instanceof Redis) await this.redis.connect();
  }

  /** A second call does nothing: by then the way to Redis may be gone. */
  async dispose(): Promise<void> {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    if (this.redis.status === "end") await this.return();
    await this.liveness.end();
    this.redis.disconnect();
  }
}
