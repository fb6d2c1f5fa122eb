/** Two tenants in one bucket never meet, although they choose the same ids and the same keys. */
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { pino } from "pino";
import { encodeRequestId, decodeRequestId, type RequestAddress } from "#shared/queue/address.js";
import { attend } from "#shared/queue/admission/attend.js";
import { readLogs } from "#shared/queue/admission/read-logs.js";
import { cancelRequest } from "#shared/queue/ends/cancel.js";
import type { CorrelationId } from "#shared/contract/sequence.js";
import type { Delivery } from "#shared/queue/entry.js";
import { laneKeys, outcomeKey, tokenSubject } from "#shared/queue/keys.js";
import { appendTokens } from "#shared/queue/work/streams/append-tokens.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { mendSequence } from "#shared/queue/work/commit/mend-sequence.js";
import { readProgress } from "#shared/queue/work/streams/read-progress.js";
import { release } from "#shared/queue/work/read/release.js";
import { takeOver } from "#shared/queue/work/streams/take-over.js";
import { Deadlines } from "../../gateway/admission/deadlines.js";
import { AdmissionBatcher } from "../../gateway/admission/batcher.js";
import { enqueue, type EnqueueSettings } from "../../gateway/admission/enqueue.js";
import type { AnyRequest } from "../../gateway/admission/inference.js";
import { requestAddress } from "../../gateway/admission/request-id.js";
import { PendingRequests } from "../../gateway/outcomes/pending.js";
import { LogReader } from "../../gateway/stream/log-reader.js";
import { Readers } from "../../gateway/stream/readers.js";
import { servedModel } from "../fixtures/served-models.js";
import { IDLE_MS, LIMITS, finalRecord, put, record, result, streaming, useLab, secret } from "../support/queue/lab.js";
import { silentBus } from "../support/silent.js";

const SEVEN: CorrelationId = { kind: "uint64", value: 7n };
const TENANTS = ["acme", "globex"] as const;
const [acme, globex] = TENANTS;

describe("two tenants", () => {
  const lab = useLab();
  let queue: EnqueueSettings;
  let gateway: string;
  beforeEach(() => {
    gateway = `gw-${randomUUID()}`;
    queue = {
      redis: lab.redis,
      batcher: new AdmissionBatcher(lab.redis, { gateway, limits: LIMITS }),
      buckets: 1,
      models: { pinned: () => undefined, heir: () => undefined },
      secret: () => Buffer.from("of the lab"),
      idempotencyTtlMs: 60_000,
    };
  });

  const requestOf = (tenant: string, more: Partial<AnyRequest> = {}): AnyRequest => {
    const model = servedModel(lab.lane.model);
    return { model, tenant, sequence: undefined, idempotencyKey: undefined, deadlineMs: 60_000, ...more };
  };
  /** Admits as a gateway does. @param request the id, if the test chooses one */
  async function admitted(asked: AnyRequest, request?: string, attendedMs = 0) {
    const made = requestAddress(asked, queue);
    const address = request === undefined ? made : { ...made, request };
    const encode = () => Buffer.from(`of ${asked.tenant}`);
    const entry = { request: asked, address, encode, under: () => asked, outcomeTtlMs: 60_000, attendedMs };
    const { said } = await enqueue(queue, entry);
    return { said, address };
  }
  const step = (start: boolean, end = false) => ({ sequence: { id: SEVEN, start, end } });
  /** One request of each tenant, both under the id `same`, held by one worker. */
  async function bothHeld(attendedMs = 0) {
    const addresses: RequestAddress[] = [];
    for (const tenant of TENANTS) addresses.push((await admitted(requestOf(tenant), "same", attendedMs)).address);
    const deliveries = await lab.take();
    expect(deliveries.map(({ tenant, request }) => [tenant, request])).toEqual([
      [acme, "same"],
      [globex, "same"],
    ]);
    return { addresses, deliveries } as {
      addresses: [RequestAddress, RequestAddress];
      deliveries: [Delivery, Delivery];
    };
  }
  const facts = (address: RequestAddress) => lab.redis.hgetall(outcomeKey(address));

  it("have a sequence each under the same id", async () => {
    for (const tenant of TENANTS)
      expect(await admitted(requestOf(tenant, step(true)))).toMatchObject({ said: "admitted" });
    const [first, second] = await lab.take();
    if (!first || !second) throw new Error("neither waits for the other");
    await commit(lab.queue, [result(first, put("acme's"))], IDLE_MS);
    await commit(lab.queue, [result(second, put("globex's"))], IDLE_MS);
    await admitted(requestOf(acme, step(false, true)));
    await commit(lab.queue, [result(await lab.takeOne(), { action: "keep" })], IDLE_MS);
    const state = (tenant: string) => lab.currentState(`${tenant}:u7`);
    expect([await state(acme), await state(globex)]).toEqual([null, "globex's"]);
    expect((await admitted(requestOf(globex, step(false)))).said).toBe("admitted");
    await expect(admitted(requestOf(acme, step(false)))).rejects.toMatchObject({ code: "sequence_start_required" });
  });

  it("have a request each under the same Idempotency-Key, and a retry finds its own tenant's", async () => {
    const keyed = (tenant: string) => admitted(requestOf(tenant, { idempotencyKey: "order-1001" }));
    const first = await keyed(acme);
    const second = await keyed(globex);
    expect([first.said, second.said]).toEqual(["admitted", "admitted"]);
    expect(first.address.request).not.toBe(second.address.request);
    expect([(await keyed(acme)).said, (await keyed(globex)).said]).toEqual(["known", "known"]);
    expect(await lab.take()).toHaveLength(2);
  });

  it("have an outcome each under the same request id", async () => {
    const { addresses, deliveries } = await bothHeld();
    const answer = Buffer.from("acme's");
    const settled = {
      ...result(deliveries[0], { action: "drop" }),
      outcome: { kind: "result", body: answer } as const,
    };
    expect(await commit(lab.queue, [settled], undefined)).toEqual(["committed"]);
    expect(await facts(addresses[0])).toMatchObject({ kind: "result", body: "acme's" });
    expect(await facts(addresses[1])).not.toHaveProperty("kind");
    expect(await commit(lab.queue, [result(deliveries[1], { action: "drop" })], undefined)).toEqual(["committed"]);
    expect(await facts(addresses[1])).toMatchObject({ kind: "result", body: "answer" });
  });

  it("cancel and keep only their own stream", async () => {
    const { addresses } = await bothHeld(60_000);
    const before = await facts(addresses[1]);
    const ending = { code: "cancelled", message: "no", ttlMs: 60_000, stream: true } as const;
    expect((await cancelRequest(lab.redis, addresses[0], ending)).said).toBe("given");
    expect(await facts(addresses[1])).toEqual(before);
    expect(await attend(lab.redis, addresses[1], 120_000)).toBe("attended");
    expect(await attend(lab.redis, addresses[0], 120_000)).toBe("ended");
  });

  it("have a log each, also for the worker that takes both over", async () => {
    const { addresses, deliveries } = await bothHeld();
    const queue = streaming(lab.queue);
    const [{ lane, entry, tenant, request }] = deliveries;
    const records = [record(0), finalRecord(1)];
    expect(await appendTokens(queue, [{ lane, entry, tenant, request, first: 0, records, final: true }])).toEqual([
      "appended",
    ]);
    const pages = await readLogs(
      lab.redis,
      addresses.map((address) => ({ ...address, from: 0 })),
    );
    expect(pages).toEqual([
      { said: "records", records, more: false },
      { said: "running", length: 0 },
    ]);
    expect((await readProgress(lab.redis, addresses)).map(({ state }) => state)).toEqual(["sealed", "open"]);
    expect(await takeOver(queue, deliveries, "a")).toEqual(["together", "together"]);
    expect(await lab.redis.hget(outcomeKey(addresses[0]), "taken")).toBe("2 0 a");
    expect(await lab.redis.hget(outcomeKey(addresses[1]), "taken")).toBe("0 1 a");
    expect(await release(queue, [deliveries[1]])).toBe(1);
    expect(await lab.redis.hget(outcomeKey(addresses[0]), "entry")).toBe(entry);
    expect(await lab.takeOne()).toMatchObject({ tenant: globex, request: "same" });
  });

  it("are told apart when a queued step of one is destroyed", async () => {
    for (const tenant of TENANTS) await admitted(requestOf(tenant, step(true)), "same");
    const [, second] = await lab.take();
    if (!second) throw new Error("two should be ready");
    await lab.redis.xdel(laneKeys(lab.lane).ready, second.entry);
    expect(await mendSequence(lab.queue, `${acme}:u7`)).toBeUndefined();
    const lost = await mendSequence(lab.queue, `${globex}:u7`);
    expect(lost).toEqual({ bucket: 0, model: lab.lane.model, tenant: globex, request: "same" });
  });

  it("publish on subjects of their own, and share no public id beyond their tenant", () => {
    const address = (tenant: string): RequestAddress => ({ bucket: 0, model: lab.lane.model, tenant, request: "same" });
    expect(tokenSubject(address(acme))).not.toBe(tokenSubject(address(globex)));
    const id = encodeRequestId(address(acme));
    expect(id).toBe(`same.0.${lab.lane.model}`);
    expect(decodeRequestId(id, globex)).toEqual(address(globex));
  });

  describe("at one gateway, under the same request id", () => {
    const log = pino({ level: "silent" });
    let stop: AbortController;
    let watching: Promise<void>[];
    const watch = (part: { watch(signal: AbortSignal): Promise<void> }) => watching.push(part.watch(stop.signal));
    beforeEach(() => {
      stop = new AbortController();
      watching = [];
    });
    afterEach(async () => {
      stop.abort();
      await Promise.all(watching);
    });

    it("are each answered with their own outcome", async () => {
      const pending = new PendingRequests({ redis: lab.redis, bus: silentBus, gateway, secret, log });
      watch(pending);
      const { addresses, deliveries } = await bothHeld();
      const expected = addresses.map((address) =>
        pending.expect({ address, outcomeTtlMs: 60_000, deadlineMs: 60_000 }),
      );
      expect(pending.size).toBe(2);
      const outcome = { kind: "result", body: Buffer.from("globex's") } as const;
      const deliver = (_: string, message: Buffer) => pending.receive(message);
      const replies = lab.repliesOf({ ...silentBus, isUp: () => true, publish: deliver });
      replies.end([], [{ delivery: deliveries[1], outcome }]);
      expect(pending.size).toBe(1);
      expect(await expected[1]?.outcome).toEqual(outcome);
      const acmes = { kind: "result", body: Buffer.from("acme's") } as const;
      replies.end([], [{ delivery: deliveries[0], outcome: acmes }]);
      expect(await expected[0]?.outcome).toEqual(acmes);
    });

    it("each keep their own stream wanted", async () => {
      const { addresses } = await bothHeld(1_000);
      const before = await Promise.all(addresses.map((address) => facts(address)));
      const readers = new Readers({ redis: lab.redis, graceMs: 600_000, log });
      for (const address of addresses) readers.join(address, false);
      for (const [i, address] of addresses.entries()) {
        const wanted = async () => Number((await facts(address))["wanted"]);
        await expect.poll(wanted).toBeGreaterThan(Number(before[i]?.["wanted"]) + 60_000);
      }
    });

    it("each have their own deadline", async () => {
      const { addresses } = await bothHeld();
      const deadlines = new Deadlines({ redis: lab.redis, bus: silentBus, log });
      const terms = { restMs: undefined, ttlMs: 60_000 };
      deadlines.add(addresses[0], { deadlineMs: 0, ...terms });
      deadlines.add(addresses[1], { deadlineMs: 600_000, ...terms });
      watch(deadlines);
      await expect.poll(async () => (await facts(addresses[0]))["kind"]).toBe("error");
      expect(await facts(addresses[1])).not.toHaveProperty("kind");
    });

    it("each read their own log", async () => {
      const { addresses, deliveries } = await bothHeld();
      for (const { lane, entry, tenant, request } of deliveries) {
        const records = [record(0, { reason: tenant === acme ? "finished" : "cancelled" })];
        await appendTokens(streaming(lab.queue), [{ lane, entry, tenant, request, first: 0, records, final: false }]);
      }
      const logs = new LogReader(lab.redis);
      const pages = await Promise.all(addresses.map((address) => logs.read(address, 0)));
      expect(pages).toMatchObject([
        { records: [record(0, { reason: "finished" })] },
        { records: [record(0, { reason: "cancelled" })] },
      ]);
    });
  });
});
