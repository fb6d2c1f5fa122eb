/**
 * A real Redis, and short calls that put steps into a lane and take steps out, for tests of one
 * queue script at a time.
 */
import { afterAll, beforeAll, beforeEach } from "vitest";
import type { Delivery } from "#shared/queue/entry.js";
import type { TokenRecord } from "#shared/contract/generation.js";
import { storeOutcome } from "#shared/contract/outcome.js";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { pinOf, type Lane, type RequestAddress } from "#shared/queue/address.js";
import { callsKey, logKey, outcomeKey, versionKey } from "#shared/queue/keys.js";
import type { Bus } from "#shared/nats/connect.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { giveOutcome } from "#shared/queue/ends/give-outcome.js";
import {
  admit as admitInCall,
  type Admission,
  type Applicant,
  type NumberedCall,
  type Terms,
} from "#shared/queue/admission/admit.js";
import type { Settlement, StateChange } from "#shared/queue/work/commit/settlement.js";
import type { LaneQueue, ModelQueue } from "#shared/queue/work/lane.js";
import { appendTokens } from "#shared/queue/work/streams/append-tokens.js";
import { createGroup } from "#shared/queue/work/read/create-group.js";
import { lanesByKey } from "#shared/queue/work/stream.js";
import { take as takeFrom } from "#shared/queue/work/read/take.js";
import { servedModel } from "../../fixtures/served-models.js";
import { OutageGuard } from "../../../worker/lane/outage-guard.js";
import { startRedis, type RedisServer } from "../brokers/redis.js";
import { ReplyPublisher } from "../../../worker/lane/publish.js";
import { silentBus, silentLog } from "../silent.js";
import { factsOf } from "./facts.js";

export const IDLE_MS = 60_000;
export const SEQUENCE = "default:u7";

export interface Step {
  readonly request: string;
  readonly start?: boolean;
  readonly end?: boolean;
  /** Whether the step begins its sequence if there is none. */
  readonly mayBegin?: boolean;
  readonly sequence?: string;
  /** The expected number of the step in its sequence. */
  readonly number?: number;
  readonly digest?: string;
  readonly body?: string;
  readonly queueLimit?: number;
  readonly backlog?: number;
  readonly sequences?: number;
  readonly deadlineMs?: number;
  readonly attendedMs?: number;
}

/** The queue of a model with a single bucket, which is a single lane. */
export type OneLane = LaneQueue & ModelQueue;

/** Filled anew before each test. Every test has its own lane. */
export class Lab {
  url!: string;
  redis!: RedisClient;
  lane!: Lane;
  queue!: OneLane;
  other!: OneLane;

  admitStep(step: Step): Promise<Admission> {
    const { request, sequence = SEQUENCE, digest = "", body = request, deadlineMs = 60_000, attendedMs = 0 } = step;
    const { start = false, end = false, mayBegin, number } = step;
    const { queueLimit = 100, backlog = 64, sequences = 1_000 } = step;
    const named = { name: sequence, start, end, mayBegin, number };
    return this.#admit(
      { ...applicant(this.lane, request, body), digest, deadlineMs, attendedMs, sequence: named },
      { queue: queueLimit, waitingPerSequence: backlog, liveSequences: sequences },
    );
  }

  admitRequest(request: string, digest = "", queueLimit = 100, body = request): Promise<Admission> {
    return this.#admit({ ...applicant(this.lane, request, body), digest }, { ...LIMITS, queue: queueLimit });
  }

  /** Admits a generator's request that is no turn of a conversation. */
  admitStream(request: string, attendedMs = 0, digest = ""): Promise<Admission> {
    return this.#admit({ ...applicant(this.lane, request, request), attendedMs, digest });
  }

  /** Takes all deliveries that are ready now. */
  take(queue: LaneQueue = this.queue): Promise<Delivery[]> {
    return take(queue);
  }

  takeOne(queue: LaneQueue = this.queue): Promise<Delivery> {
    return takeOne(queue);
  }

  /**
   * Appends the first records of a request of the default tenant, for the worker that holds the
   * entry.
   */
  append(entry: string, request: string, records: readonly string[], final = false) {
    return this.appendOf(DEFAULT_TENANT, entry, request, records, final);
  }

  /** The same for a request of any tenant. */
  appendOf(tenant: string, entry: string, request: string, records: readonly string[], final = false) {
    const append = { lane: this.lane, entry, tenant, request, first: 0, records, final };
    return appendTokens(streaming(this.queue), [append]);
  }

  /** The address of a request of the lab's lane and of the default tenant. */
  addressOf(request: string): RequestAddress {
    return addressOf(this, request);
  }

  /** Gives a request an error as its outcome, from outside any worker. */
  giveError(request: string, body: string, ttlMs = 1_000, evenSealed = false) {
    const outcome = { kind: "error", body: Buffer.from(body) } as const;
    return giveOutcome(this.redis, this.addressOf(request), outcome, ttlMs, evenSealed);
  }

  outcomeFields(request: string): Promise<Record<string, string>> {
    return this.redis.hgetall(outcomeKey(this.addressOf(request)));
  }

  logOf(request: string): Promise<string[]> {
    return this.redis.lrange(logKey(this.addressOf(request)), 0, -1);
  }

  /** The name of the sequence's current checkpoint; "" and "!" stand for none. */
  async currentVersion(sequence = SEQUENCE): Promise<string> {
    return (await factsOf(this.redis, this.lane, sequence))?.at ?? "";
  }

  /** The sequence's current checkpoint. */
  async currentState(sequence = SEQUENCE): Promise<string | null> {
    return this.redis.get(versionKey(this.lane, sequence, await this.currentVersion(sequence)));
  }

  /** The keys of all checkpoints that a sequence has in Redis. */
  statesOf(sequence = SEQUENCE): Promise<string[]> {
    return this.redis.keys(versionKey(this.lane, sequence, "*"));
  }

  /** A publisher of a worker's outcomes to gateways. By default, NATS is down. */
  repliesOf(bus: Bus = silentBus): ReplyPublisher {
    return new ReplyPublisher({ bus, redis: this.redis, secret, log: silentLog });
  }

  async #admit(one: Applicant, limits = LIMITS): Promise<Admission> {
    const [admission] = await admit(this.redis, { gateway: "gw", limits }, [one]);
    if (admission === undefined) throw new Error("one applicant should get one answer");
    return admission;
  }
}

export function oneLane(redis: RedisClient, lane: Lane, consumer: string): OneLane {
  const { model, version, digest } = lane;
  return { redis, lane, consumer, model, version, digest, buckets: 1 };
}

export function useLab(): Lab {
  const lab = new Lab();
  let server: RedisServer;
  let count = 0;
  beforeAll(async () => {
    server = await startRedis();
    lab.url = server.url;
    lab.redis = connectRedis({ url: server.url, name: "lab", log: silentLog });
    await whenReady(lab.redis, AbortSignal.timeout(60_000));
  });
  beforeEach(async () => {
    lab.lane = { bucket: 0, model: `m${count++}`, ...pinOf(servedModel("m")) };
    lab.queue = oneLane(lab.redis, lab.lane, "a.1");
    lab.other = oneLane(lab.redis, lab.lane, "b.1");
    await createGroup(lab.redis, lab.lane);
  });
  afterAll(async () => {
    lab.redis.disconnect();
    await server.dispose();
  });
  return lab;
}

/** The secret that gateways and workers of a lab share, as in the deployment's record. */
export const secret = (): Buffer => Buffer.alloc(32, 1);

export const LIMITS = { queue: 100, waitingPerSequence: 64, liveSequences: 1_000 };

/** A stateless request. */
export function applicant(lane: Lane, request: string, body: string): Applicant {
  const times = { outcomeTtlMs: 60_000, deadlineMs: 60_000, attendedMs: 0 };
  return { lane, tenant: DEFAULT_TENANT, request, frame: Buffer.from(body), digest: "", ...times, sequence: undefined };
}

let calls = 0;

/**
 * Names a call that no other test or gateway has sent.
 * @param bucket in a Redis Cluster
 */
export function onlyCall(bucket?: number): NumberedCall {
  return { record: callsKey(`only-${calls++}`, bucket), number: 1, acknowledged: 0 };
}

/** Admits in a single call, by default a call without copies. */
export async function admit(
  redis: RedisClient,
  terms: Terms,
  applicants: readonly Applicant[],
  call = onlyCall(redis.isCluster ? applicants[0]?.lane.bucket : undefined),
): Promise<Admission[]> {
  const admitted = await admitInCall(redis, terms, applicants, call);
  if (admitted.said !== "answered") throw new Error(`a first call was answered ${admitted.said}`);
  return [...admitted.admissions];
}

/** The outage guard of a worker whose Redis has always answered. */
export function steady(): OutageGuard {
  return new OutageGuard(60_000, performance.now());
}

/** The queue as a generator's lane. */
export function streaming(queue: OneLane): OneLane & { readonly streams: true } {
  return { ...queue, streams: true };
}

export function record(index: number, more: Partial<TokenRecord> = {}): string {
  return JSON.stringify({ index, choices: [], ...more } satisfies TokenRecord);
}

export function finalRecord(index: number): string {
  return record(index, { final: true, reason: "finished" });
}

/** The address of a request of the lab's lane and of the default tenant. */
export function addressOf({ lane }: { readonly lane: Lane }, request: string): RequestAddress {
  return { bucket: lane.bucket, model: lane.model, tenant: DEFAULT_TENANT, request };
}

/** Takes all deliveries that are ready now. */
export async function take(queue: LaneQueue): Promise<Delivery[]> {
  const { redis, consumer, lane } = queue;
  return (await takeFrom(redis, consumer, lanesByKey([lane]), 100)).deliveries;
}

export async function takeOne(queue: LaneQueue): Promise<Delivery> {
  const [delivery] = await take(queue);
  if (delivery === undefined) throw new Error("nothing is ready");
  return delivery;
}

export function result(delivery: Delivery, state: StateChange, deadReason?: string): Settlement {
  return { delivery, outcome: storeOutcome({ kind: "result", body: Buffer.from("answer") }), state, deadReason };
}

/** Gives the checkpoint of each run of a step a name of its own. */
let runs = 0;

export function put(text: string): StateChange {
  return { action: "put", version: `v${runs++}`, checkpoint: Buffer.from(text) };
}
