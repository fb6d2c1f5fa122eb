/** A real Redis and the shortest way to put steps into a lane and take them out, for tests of one queue script at a time. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach } from "vitest";
import type { Delivery } from "#shared/contract/entry.js";
import type { TokenRecord } from "#shared/contract/generation.js";
import { storeOutcome } from "#shared/contract/outcome.js";
import { logKey, outcomeKey, type Lane } from "#shared/keys.js";
import type { Bus } from "#shared/nats/connect.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { admit, type Admission, type Applicant } from "../../gateway/admission/admit.js";
import type { Settlement, StateChange } from "../../worker/queue/commit.js";
import type { LaneQueue, StreamQueue } from "../../worker/queue/lane.js";
import { ensureGroup, readNew } from "../../worker/queue/stream.js";
import { startRedis, type RedisServer } from "../setup/redis.js";

export const IDLE_MS = 60_000;
export const SEQUENCE = "default:u7";

export interface Step {
  readonly request: string;
  readonly start?: boolean;
  readonly end?: boolean;
  readonly sequence?: string;
  readonly digest?: string;
  readonly body?: string;
  readonly queueLimit?: number;
  readonly backlog?: number;
  readonly sequences?: number;
  readonly deadlineMs?: number;
  readonly attendedMs?: number;
}

/** NATS that is down. */
export const silentBus: Bus = {
  publish: () => undefined,
  subscribe: () => Promise.resolve(() => undefined),
  isUp: () => false,
  maxBytes: () => 1_000,
  close: () => Promise.resolve(),
};

/** Filled anew before each test; every test has a lane of its own. */
export interface Lab {
  url: string;
  redis: RedisClient;
  lane: Lane;
  queue: LaneQueue;
  other: LaneQueue;
}

export function useLab(): Lab {
  const folder = mkdtempSync(join(tmpdir(), "baton-queue-"));
  const lab = {} as Lab;
  let server: RedisServer;
  let count = 0;
  beforeAll(async () => {
    server = await startRedis(folder);
    lab.url = server.url;
    lab.redis = connectRedis({ url: server.url, name: "lab", log: pino({ level: "silent" }) });
    await whenReady(lab.redis, AbortSignal.timeout(10_000));
  });
  beforeEach(async () => {
    lab.lane = { model: `m${count++}`, version: "1", shard: 0 };
    lab.queue = { redis: lab.redis, lane: lab.lane, consumer: "a.1" };
    lab.other = { redis: lab.redis, lane: lab.lane, consumer: "b.1" };
    await ensureGroup(lab.redis, lab.lane);
  });
  afterAll(async () => {
    lab.redis.disconnect();
    await server.dispose();
    rmSync(folder, { recursive: true, force: true });
  });
  return lab;
}

export function admitStep(lab: Lab, step: Step) {
  const { request, sequence = SEQUENCE, digest = "", body = request, deadlineMs = 60_000, attendedMs = 0 } = step;
  const { queueLimit = 100, backlog = 64, sequences = 1_000 } = step;
  return admitOne(
    lab,
    {
      ...applicant(request, body),
      digest,
      deadlineMs,
      attendedMs,
      sequence: { name: sequence, start: step.start === true, end: step.end === true },
    },
    { queue: queueLimit, waitingPerSequence: backlog, liveSequences: sequences },
  );
}

export function admitRequest(lab: Lab, request: string, digest = "", queueLimit = 100, body = request) {
  return admitOne(lab, { ...applicant(request, body), digest }, { ...LIMITS, queue: queueLimit });
}

/** A generator's request outside of any conversation. */
export function admitStream(lab: Lab, request: string, attendedMs = 0) {
  return admitOne(lab, { ...applicant(request, request), attendedMs });
}

export const LIMITS = { queue: 100, waitingPerSequence: 64, liveSequences: 1_000 };

/** A stateless request. */
export function applicant(request: string, body: string): Applicant {
  const times = { outcomeTtlMs: 60_000, deadlineMs: 60_000, attendedMs: 0 };
  return { request, frame: Buffer.from(body), digest: "", ...times, sequence: undefined };
}

async function admitOne({ redis, lane }: Lab, one: Applicant, limits = LIMITS): Promise<Admission> {
  const [admission] = await admit(redis, lane, { gateway: "gw", limits }, [one]);
  if (admission === undefined) throw new Error("one applicant should get one answer");
  return admission;
}

/** As the lane of a generator has it. */
export function streaming(queue: LaneQueue): StreamQueue {
  return { ...queue, streams: true };
}

export function record(index: number, more: Partial<TokenRecord> = {}): string {
  return JSON.stringify({ index, choices: [], ...more } satisfies TokenRecord);
}

export function finalRecord(index: number): string {
  return record(index, { final: true, reason: "finished" });
}

export function outcomeFields({ redis, lane }: Lab, request: string): Promise<Record<string, string>> {
  return redis.hgetall(outcomeKey(lane, request));
}

export function logOf({ redis, lane }: Lab, request: string): Promise<string[]> {
  return redis.lrange(logKey(lane, request), 0, -1);
}

/** All that is ready now. */
export async function take(queue: LaneQueue): Promise<Delivery[]> {
  return (await readNew(queue, 100, 1)).deliveries;
}

export async function takeOne(queue: LaneQueue): Promise<Delivery> {
  const [delivery] = await take(queue);
  if (delivery === undefined) throw new Error("nothing is ready");
  return delivery;
}

export function result(delivery: Delivery, state: StateChange, deadReason?: string): Settlement {
  return { delivery, outcome: storeOutcome({ kind: "result", body: Buffer.from("answer") }), state, deadReason };
}

export function put(text: string): StateChange {
  return { action: "put", checkpoint: Buffer.from(text) };
}
