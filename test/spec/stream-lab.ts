/**
 * A gateway's relay in this process between a real Redis and a real NATS, each behind a line that can be cut; and the test as the worker, which appends and publishes
 * by hand, so that it decides what is lost, doubled, late or forged.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { pino } from "pino";
import { afterAll, beforeAll } from "vitest";
import type { SamplingSpec, TokenRecord } from "#shared/contract/generation.js";
import { storeOutcome, type Outcome } from "#shared/contract/outcome.js";
import { decodeRequestId, encodeRequestId, type RequestAddress } from "#shared/contract/request-id.js";
import { logKey, outcomeKey, tokenSubject } from "#shared/keys.js";
import { connectBus, type Bus } from "#shared/nats/connect.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { Deadlines } from "../../gateway/admission/deadlines.js";
import type { Door } from "../../gateway/admission/enter.js";
import type { PlaceTerms } from "../../gateway/admission/place.js";
import { Gatherer } from "../../gateway/admission/gather.js";
import { generator } from "../../gateway/admission/generate.js";
import type { Generate, GenerationRequest, StreamRecord } from "../../gateway/inference.js";
import { Attendance } from "../../gateway/stream/attendance.js";
import { Cursor } from "../../gateway/stream/cursor.js";
import { Relay } from "../../gateway/stream/relay.js";
import { servedModel } from "../setup/echo-gateway.js";
import { startNats, type NatsServer } from "../setup/nats.js";
import { Proxy } from "../setup/proxy.js";
import { startRedis, type RedisServer } from "../setup/redis.js";

const silent = pino({ level: "silent" });
const KEPT_MS = 60_000;
/** Where the lab's gateways put their requests. */
export const PLACE: PlaceTerms = { shards: 1, secret: () => Buffer.from("of the lab") };

export const talker = servedModel("talker", {
  inputs: [{ name: "text_input", datatype: "BYTES", dims: [1] }],
  outputs: [{ name: "text_output", datatype: "BYTES", dims: [1] }],
  generator: { contextLength: 10_000, vocabSize: 100, chat: false, maxChoices: 4, maxIdleMs: 60_000, defaults: {} },
});

/** What one gateway process has for streams. */
export interface RelayMember {
  readonly relay: Relay;
  readonly generate: Generate;
  readonly redis: RedisClient;
  readonly bus: Bus;
  stop(): Promise<void>;
}

/** Filled before the first test. */
export interface StreamLab {
  redisServer: RedisServer;
  nats: NatsServer;
  lines: { redis: Proxy; nats: Proxy };
  /** The worker's, past the lines. */
  redis: RedisClient;
  bus: Bus;
  gateway: RelayMember;
  /** Another, on the same lines. */
  addGateway(graceMs?: number): Promise<RelayMember>;
  /** How often scripts have been called so far. */
  scriptCalls(): Promise<number>;
}

export function useStreamLab(): StreamLab {
  const folder = mkdtempSync(join(tmpdir(), "baton-streams-"));
  const lab = {} as StreamLab;
  const members: RelayMember[] = [];
  lab.addGateway = async (graceMs = 30_000) => {
    const member = await startMember(lab, graceMs);
    members.push(member);
    return member;
  };
  lab.scriptCalls = async () => {
    const info = await lab.redis.info("commandstats");
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(info)?.[1] ?? 0);
  };
  beforeAll(async () => {
    lab.redisServer = await startRedis(folder);
    lab.nats = await startNats(folder);
    lab.lines = { redis: await Proxy.start(lab.redisServer.port), nats: await Proxy.start(lab.nats.port) };
    lab.redis = connectRedis({ url: lab.redisServer.url, name: "worker", log: silent });
    await whenReady(lab.redis, AbortSignal.timeout(10_000));
    lab.bus = connectBus({ url: lab.nats.url, name: "worker", log: silent });
    lab.gateway = await lab.addGateway();
    await until(() => lab.bus.isUp() && lab.gateway.bus.isUp());
  });
  afterAll(async () => {
    for (const member of members) await member.stop();
    await lab.bus.close();
    lab.redis.disconnect();
    await lab.lines.redis.dispose();
    await lab.lines.nats.dispose();
    await lab.nats.dispose();
    await lab.redisServer.dispose();
    rmSync(folder, { recursive: true, force: true });
  });
  return lab;
}

async function startMember({ lines }: StreamLab, graceMs: number): Promise<RelayMember> {
  const redis = connectRedis({ url: `redis://127.0.0.1:${lines.redis.port}`, name: "gateway", log: silent });
  await whenReady(redis, AbortSignal.timeout(10_000));
  const bus = connectBus({ url: `nats://127.0.0.1:${lines.nats.port}`, name: "gateway", log: silent });
  const deadlines = new Deadlines({ redis, bus, log: silent });
  const attendance = new Attendance({ redis, graceMs, log: silent });
  const isStream = ({ model }: { model: string }) => (model === "unknown" ? undefined : model === talker.name);
  const onEnd = (address: RequestAddress) => deadlines.forget(address);
  const relay = new Relay({ redis, bus, isStream, attendance, onEnd, log: silent });
  const closing = new AbortController();
  const watching = Promise.all([
    relay.watch(closing.signal),
    attendance.watch(closing.signal),
    deadlines.watch(closing.signal),
  ]);
  const limits = { queue: 10_000, waitingPerSequence: 64, liveSequences: 1_000 };
  const gatherer = new Gatherer(redis, { gateway: "gw", limits });
  const door: Door = { redis, gatherer, ...PLACE, idempotencyTtlMs: KEPT_MS };
  const terms = { streamTtlMs: KEPT_MS, resultTtlMs: KEPT_MS, graceMs };
  return {
    relay,
    generate: generator({ door, bus, relay, deadlines, ...terms, log: silent }),
    redis,
    bus,
    async stop() {
      closing.abort();
      await watching;
      await bus.close();
      redis.disconnect();
    },
  };
}

const sampling: SamplingSpec = {
  temperature: 0,
  topK: 0,
  topP: 1,
  minP: 0,
  repetitionPenalty: 1,
  presencePenalty: 0,
  frequencyPenalty: 0,
  logitBias: [],
  seed: 1,
  choices: 1,
  logprobs: null,
  stop: [],
  stopTokens: [],
  ignoreEos: false,
  minTokens: 0,
  maxTokens: null,
};

export function asked(more: Partial<GenerationRequest> = {}): GenerationRequest {
  return {
    model: talker,
    tenant: "default",
    sequence: undefined,
    spec: { prompt: { kind: "text", text: "once" }, sampling },
    idempotencyKey: undefined,
    deadlineMs: 60_000,
    background: false,
    ...more,
  };
}

export function recordAt(index: number, more: Partial<TokenRecord> = {}): string {
  return JSON.stringify({ index, choices: [{ index: 0, text: `t${index} é`, tokens: [index % 100] }], ...more });
}

export function lastRecord(index: number): string {
  const usage = { prompt_tokens: 1, completion_tokens: index };
  const choices = [{ index: 0, text: "", tokens: [], finish_reason: "stop" as const }];
  return JSON.stringify({ index, choices, final: true, reason: "finished", usage } satisfies TokenRecord);
}

/** A stream of this many records, the final one included. */
export function wholeStream(count: number): string[] {
  return Array.from({ length: count }, (_, i) => (i === count - 1 ? lastRecord(i) : recordAt(i)));
}

/** The worker of one request. */
export class Writer {
  readonly address: RequestAddress;
  readonly subject: string;
  readonly #lab: StreamLab;
  readonly #key: string;
  readonly #outcome: string;

  constructor(lab: StreamLab, id: string) {
    const address = decodeRequestId(id);
    if (address === undefined) throw new Error(`no request id: ${id}`);
    this.#lab = lab;
    this.address = address;
    this.subject = tokenSubject("default", address.lane, address.request);
    this.#key = logKey(address.lane, address.request);
    this.#outcome = outcomeKey(address.lane, address.request);
  }

  async append(...records: string[]): Promise<void> {
    await this.#lab.redis.rpush(this.#key, ...records);
  }

  publish(...records: (string | Buffer)[]): void {
    for (const record of records) this.#lab.bus.publish(this.subject, Buffer.from(record));
  }

  /** Appends, publishes, and with the final record gives the outcome. */
  async write(...records: string[]): Promise<void> {
    await this.append(...records);
    this.publish(...records);
    if (records.at(-1)?.includes('"final":true') === true) await this.give({ kind: "result", body: Buffer.from("x") });
  }

  async give(outcome: Outcome): Promise<void> {
    const { kind, body } = storeOutcome(outcome);
    await this.#lab.redis.hset(this.#outcome, { kind, body, ended: String(Date.now()) });
  }

  async destroy(...what: ("log" | "outcome")[]): Promise<void> {
    await this.#lab.redis.del(...what.map((one) => (one === "log" ? this.#key : this.#outcome)));
  }

  facts(): Promise<Record<string, string>> {
    return this.#lab.redis.hgetall(this.#outcome);
  }
}

/** A request that no gateway of the lab has admitted. */
export async function foreignRequest(lab: StreamLab, model = talker.name): Promise<{ id: string; writer: Writer }> {
  const id = encodeRequestId({ request: `r${requests++}`, lane: { model, version: "1", shard: 0 } });
  const writer = new Writer(lab, id);
  await lab.redis.hset(outcomeKey(writer.address.lane, writer.address.request), "digest", "", "at", String(Date.now()));
  return { id, writer };
}

let requests = 0;

/** Everything that a reader is given, as text; `seen` grows while it reads. */
export interface Reading {
  readonly seen: string[];
  readonly indexes: number[];
  readonly done: Promise<string[]>;
  leave(): void;
}

export function read(records: (signal: AbortSignal) => AsyncIterable<readonly StreamRecord[]>): Reading {
  const leaving = new AbortController();
  const seen: string[] = [];
  const indexes: number[] = [];
  const all = async () => {
    for await (const page of records(leaving.signal)) {
      for (const { index, json } of page) {
        indexes.push(index);
        seen.push(json);
      }
    }
    return seen;
  };
  const done = all();
  done.catch(() => undefined); // whoever awaits it is told
  return { seen, indexes, done, leave: () => leaving.abort() };
}

/** @param after index of the last record that the reader has; -1 for none. */
export async function resume({ relay }: RelayMember, { address }: Writer, after: number): Promise<Reading> {
  const cursor = await Cursor.open(relay, address, after + 1);
  return read((signal) => cursor.pages(signal));
}

/** What this process holds in memory, garbage aside. */
export function heldBytes(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

export async function until(condition: () => boolean | Promise<boolean>, patienceMs = 15_000): Promise<void> {
  const giveUpAt = performance.now() + patienceMs;
  while (!(await condition())) {
    if (performance.now() > giveUpAt) throw new Error("what was waited for did not happen");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
