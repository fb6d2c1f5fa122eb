/**
 * A gateway's parts for streams, in this process and without an HTTP edge. The parts reach real
 * brokers through the fleet's lines, so a test can cut them off.
 */
import { randomUUID } from "node:crypto";
import type { RequestAddress } from "#shared/queue/address.js";
import { connectBus, type Bus } from "#shared/nats/connect.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { Deadlines } from "../../../gateway/admission/deadlines.js";
import { AdmissionBatcher } from "../../../gateway/admission/batcher.js";
import type { EnqueueSettings } from "../../../gateway/admission/enqueue.js";
import { generate } from "../../../gateway/admission/generate.js";
import type { Inference } from "../../../gateway/admission/inference.js";
import type { AddressTerms } from "../../../gateway/admission/request-id.js";
import { Cursor } from "../../../gateway/stream/cursor.js";
import type { StreamRecord } from "../../../gateway/stream/open-stream.js";
import { Readers } from "../../../gateway/stream/readers.js";
import { Relay } from "../../../gateway/stream/relay.js";
import { talker } from "../../fixtures/generation.js";
import type { Fleet } from "../fleet/fleet.js";
import { silentLog } from "../silent.js";
import { until } from "../until.js";

const KEPT_MS = 60_000;

/** The bucket and the secret of these gateways' requests. */
export const PLACE: AddressTerms = { buckets: 1, secret: () => Buffer.from("of the lab") };

export interface RelayGateway {
  readonly relay: Relay;
  readonly generate: Inference["generate"];
  readonly redis: RedisClient;
  readonly bus: Bus;
  stop(): Promise<void>;
}

/** @param graceMs how long a stream without readers stays wanted */
export async function startRelayGateway({ lines }: Fleet, graceMs: number): Promise<RelayGateway> {
  const { gatewayRedis, nats } = lines;
  const redis = connectRedis({ url: `redis://127.0.0.1:${gatewayRedis.port}`, name: "gateway", log: silentLog });
  await whenReady(redis, AbortSignal.timeout(60_000));
  const bus = connectBus({ url: `nats://127.0.0.1:${nats.port}`, name: "gateway", log: silentLog });
  const deadlines = new Deadlines({ redis, bus, log: silentLog });
  const readers = new Readers({ redis, graceMs, log: silentLog });
  const hasStreams = (model: string) => (model === "unknown" ? undefined : model === talker.name);
  const onEnd = (address: RequestAddress) => deadlines.remove(address);
  const relay = new Relay({ redis, bus, models: { hasStreams }, readers, onEnd, log: silentLog });
  const closing = new AbortController();
  const watching = Promise.all([
    relay.watch(closing.signal),
    readers.watch(closing.signal),
    deadlines.watch(closing.signal),
  ]);
  const limits = { queue: 10_000, waitingPerSequence: 64, liveSequences: 1_000 };
  const batcher = new AdmissionBatcher(redis, { gateway: `gw-${randomUUID()}`, limits });
  const queue: EnqueueSettings = {
    redis,
    batcher,
    models: { pinned: () => talker, heir: () => undefined },
    ...PLACE,
    idempotencyTtlMs: KEPT_MS,
  };
  const terms = { streamTtlMs: KEPT_MS, resultTtlMs: KEPT_MS, graceMs };
  const settings = { queue, bus, relay, deadlines, ...terms, log: silentLog };
  await until(() => bus.isUp());
  return {
    relay,
    generate: (request) => generate(settings, request),
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

/** The records that a reader gets. */
export interface Listener {
  /** The records' texts so far; grows while the reader reads. */
  readonly seen: string[];
  readonly indexes: number[];
  /** Resolves with all texts when the stream ends or the reader has left. */
  readonly done: Promise<string[]>;
  leave(): void;
}

export function listen(records: (signal: AbortSignal) => AsyncIterable<readonly StreamRecord[]>): Listener {
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
  done.catch(() => undefined); // the test that awaits it gets the error
  return { seen, indexes, done, leave: () => leaving.abort() };
}

/** @param after index of the last record that the reader has; -1 for none */
export async function resume(
  { relay }: RelayGateway,
  { address }: { readonly address: RequestAddress },
  after: number,
): Promise<Listener> {
  const cursor = await Cursor.open(relay, address, after + 1);
  return listen((signal) => cursor.pages(signal));
}
