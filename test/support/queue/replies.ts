/**
 * A gateway that waits for outcomes, and a worker that commits and publishes outcomes, over the
 * lab's Redis and a real NATS server. Tests can disturb both in ways that are impossible with whole
 * processes.
 */
import type { Outcome } from "#shared/contract/outcome.js";
import { connectBus, type Bus } from "#shared/nats/connect.js";
import type { Delivery } from "#shared/queue/entry.js";
import { replySubject } from "#shared/queue/keys.js";
import { realWorld } from "#shared/world.js";
import { PendingRequests, type Expected } from "../../../gateway/outcomes/pending.js";
import type { ReplyPublisher } from "../../../worker/lane/publish.js";
import { settle } from "../../../worker/lane/settle.js";
import { States } from "../../../worker/sequence/states.js";
import { silentBus, silentLog } from "../silent.js";
import { until } from "../until.js";
import { admit, applicant, result, secret, take, type Lab, LIMITS } from "./lab.js";

export const GATEWAY = "gw";

/** A request that the worker holds and the gateway waits for. */
export interface Open {
  readonly delivery: Delivery;
  readonly expected: Expected;
}

async function connected(url: string, name: string): Promise<Bus> {
  const bus = connectBus({ url, name, log: silentLog });
  await until(() => bus.isUp());
  return bus;
}

export class WaitingGateway {
  readonly pending: PendingRequests;
  readonly bus: Bus;
  readonly #lab: Lab;
  readonly #stop = new AbortController();
  readonly #watching: Promise<void>;

  private constructor(lab: Lab, bus: Bus) {
    this.#lab = lab;
    this.bus = bus;
    this.pending = new PendingRequests({ redis: lab.redis, bus, gateway: GATEWAY, secret, log: silentLog });
    this.#watching = this.pending.watch(this.#stop.signal);
  }

  /** @param url of NATS */
  static async start(lab: Lab, url: string): Promise<WaitingGateway> {
    const gateway = new WaitingGateway(lab, await connected(url, GATEWAY));
    await gateway.bus.subscribe(replySubject(GATEWAY), (message) => gateway.pending.receive(message));
    return gateway;
  }

  expect(request: string, deadlineMs = 600_000): Expected {
    return this.pending.expect({ address: this.#lab.addressOf(request), outcomeTtlMs: 60_000, deadlineMs });
  }

  /**
   * Admits this many requests, all of which the lab's worker has taken.
   * @param admittedBy the gateway that gets their replies
   */
  async open(count: number, admittedBy = GATEWAY): Promise<Open[]> {
    const { redis, lane, queue } = this.#lab;
    const terms = { gateway: admittedBy, limits: { ...LIMITS, queue: 1_000_000 } };
    const open: Open[] = [];
    for (let i = 0; i < count; i += 50) {
      const names = Array.from({ length: Math.min(50, count - i) }, (_, j) => `${admittedBy}-r${i + j}`);
      const expected = new Map(names.map((name) => [name, this.expect(name)]));
      const applicants = names.map((name) => applicant(lane, name, name));
      await admit(redis, terms, applicants);
      for (const one of expected.values()) one.admitted(admittedBy !== GATEWAY);
      for (const delivery of await take(queue)) {
        const one = expected.get(delivery.request);
        if (one !== undefined) open.push({ delivery, expected: one });
      }
    }
    return open;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#watching;
    await this.bus.close();
  }
}

export class AnsweringWorker {
  readonly bus: Bus;
  /** Sees each message before NATS does, and loses the message if it returns true. */
  loses: (message: Buffer) => boolean = () => false;
  /** Whether the worker publishes even while NATS is down. */
  believesInNats = false;
  readonly #lab: Lab;
  readonly #replies: ReplyPublisher;
  readonly #stop = new AbortController();
  readonly #beating: Promise<void>;

  private constructor(lab: Lab, bus: Bus) {
    this.#lab = lab;
    this.bus = bus;
    const publish = (subject: string, message: Buffer) => {
      if (!this.loses(message)) bus.publish(subject, message);
    };
    this.#replies = lab.repliesOf({
      ...silentBus,
      publish,
      isUp: () => this.believesInNats || bus.isUp(),
      connections: () => bus.connections(),
      maxBytes: () => bus.maxBytes(),
    });
    this.#beating = this.#replies.beatWhileOpen(this.#stop.signal);
  }

  static async start(lab: Lab, url: string): Promise<AnsweringWorker> {
    return new AnsweringWorker(lab, await connected(url, "worker"));
  }

  async settle(open: readonly Open[]): Promise<void> {
    const { queue } = this.#lab;
    const states = new States(queue, 1_000);
    const terms = { maxIdleMs: undefined, budgetMs: 1_000, patienceMs: 1_000, world: realWorld };
    const settler = { queue, bus: this.bus, replies: this.#replies, states, ...terms };
    const settled = open.map(({ delivery }) => ({ ...result(delivery, { action: "drop" }), checkpoint: undefined }));
    const fates = await settle(settler, settled);
    if (fates.committed !== open.length) throw new Error(`committed ${fates.committed} of ${open.length}`);
  }

  /** Loses every later message, as if the worker's process were dead. */
  die(): void {
    this.loses = () => true;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#beating;
    await this.bus.close();
  }
}

/** The outcomes of these requests, as soon as all have an outcome. */
export function outcomesOf(open: readonly Open[]): Promise<Outcome[]> {
  return Promise.all(open.map(({ expected }) => expected.outcome));
}

/** The outcome that `AnsweringWorker` commits for each of these requests. */
export function answersTo(open: readonly Open[]): Outcome[] {
  return open.map(() => ({ kind: "result", body: Buffer.from("answer") }));
}
