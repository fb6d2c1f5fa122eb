/** A gateway carries the states of sequences over the connection that fits their size. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { encodeSequenceFrame } from "#shared/contract/sequence-frame.js";
import { bucketOf, pinOf } from "#shared/queue/address.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { directoryOf } from "../../gateway/fleet/models.js";
import { defaultLimits } from "../../gateway/formats/limits.js";
import type { Change } from "../../gateway/sequences/sequence-id.js";
import { anyOwner } from "../../gateway/auth/owner/owner.js";
import { Caller } from "../../gateway/service/caller.js";
import { SequenceService } from "../../gateway/service/sequences.js";
import { announcementOf, servedModel } from "../fixtures/served-models.js";
import { TestGateway } from "../support/gateway/test-gateway.js";
import { LIMITS, useLab } from "../support/queue/lab.js";
import { silentLog } from "../support/silent.js";

const BUCKETS = 16;
const LARGE = 2 << 20;
const model = servedModel("carried", {
  sequence: { maxIdleMs: 60_000 },
  config: { sequence_batching: { state: [{ input_name: "s", data_type: "TYPE_UINT8", dims: [-1] }] } },
});

const bucketOfId = (id: number) => bucketOf(model.name, "default", `u${id}`, BUCKETS);

/** The first id after `id` that lies in another bucket. */
function elsewhere(id: number): number {
  for (let other = id + 1; ; other++) if (bucketOfId(other) !== bucketOfId(id)) return other;
}

function change(id: number): Change {
  const correlation = { kind: "uint64", value: BigInt(id) } as const;
  return { tenant: "default", model, version: undefined, id: correlation, idempotencyKey: undefined };
}

function frameOf(bytes: number): Buffer {
  const data = Buffer.alloc(bytes, 7);
  const tensors = [{ name: "s", datatype: "UINT8", shape: [bytes], data }] as const;
  return encodeSequenceFrame({ step: 3, model: model.name, ...pinOf(model), tensors });
}

describe("a state that a gateway carries", () => {
  const lab = useLab();
  let forLarge: RedisClient;
  let sequences: SequenceService;
  beforeAll(async () => {
    forLarge = connectRedis({ url: lab.url, name: "for-large", log: silentLog });
    await whenReady(forLarge, AbortSignal.timeout(60_000));
    const models = { workerOf: () => undefined, directory: directoryOf([announcementOf([model])]) };
    const facts = { buckets: BUCKETS, models, limits: LIMITS, maxStateBytes: 1 << 24 };
    sequences = new SequenceService({
      redis: lab.redis,
      forLarge,
      hasOneTenant: true,
      idempotencyTtlMs: 60_000,
      ...facts,
    });
  });
  afterAll(() => forLarge.disconnect());

  /** Whether `act` uses the connection for large values. */
  async function takesOther(act: () => Promise<unknown>): Promise<boolean> {
    await forLarge.ping();
    await act();
    const clients = String(await lab.redis.client("LIST")).split("\n");
    const used = clients
      .filter((client) => client.includes(" name=for-large "))
      .map((client) => / cmd=(\S+)/.exec(client));
    expect(used).toHaveLength(1);
    return used[0]?.[1] !== "ping";
  }

  it.each([
    ["over the connection for large things where it is large", LARGE, 100, true],
    ["over the usual connection where it is small", 1_000, 200, false],
  ])("travels %s", async (_, bytes, from, other) => {
    const frame = frameOf(bytes);
    const to = elsewhere(from);
    expect(await takesOther(() => sequences.copies.import(change(from), frame))).toBe(other);
    let read: Buffer | undefined;
    expect(await takesOther(async () => (read = await sequences.copies.export(change(from), undefined)))).toBe(other);
    expect(read?.equals(frame)).toBe(true);
    expect(await takesOther(() => sequences.copies.fork(change(from), change(to).id, undefined))).toBe(other);
    expect(frame.equals(await sequences.copies.export(change(to), undefined))).toBe(true);
  });

  it("is counted on the first page, unless a part of Redis is away", async () => {
    for (const id of [300, elsewhere(300)]) await sequences.copies.import(change(id), frameOf(10));
    const caller = Caller.of(anyOwner("default"));
    const asked = { limit: 1, after: undefined, state: undefined, prefix: undefined };
    const name = { model: model.name, version: undefined };
    const first = await sequences.list(caller, name, asked);
    expect([first.sequences.length, (first.total ?? 0) >= 2]).toEqual([1, true]);
    expect((await sequences.list(caller, name, { ...asked, after: first.next })).total).toBeUndefined();
    const count = vi.spyOn(lab.redis, "zcard").mockRejectedValue(new Error("the master of a bucket is away"));
    const { sequences: page, total } = await sequences.list(caller, name, asked);
    count.mockRestore();
    expect([page.length, total]).toEqual([1, undefined]);
  });

  it("is refused above the limit of states", async () => {
    const limits = { ...defaultLimits, stateBytes: 1_000 };
    const gateway = await TestGateway.start({ models: [model], sequences, limits });
    try {
      const put = async (id: number, bytes: number) => {
        const url = `${gateway.url}/v2/models/${model.name}/sequences/${id}/state`;
        const answer = await fetch(url, { method: "PUT", body: frameOf(bytes) });
        return {
          status: answer.status,
          body: (await answer.json()) as { readonly code?: string; readonly error?: string },
        };
      };
      expect(await put(1, 1_000)).toMatchObject({ status: 200 });
      expect(await put(2, LARGE)).toMatchObject({
        status: 413,
        body: { code: "payload_too_large", error: expect.stringContaining("larger than the limit of") as string },
      });
    } finally {
      await gateway.server.close(0);
    }
  });

  it("is refused at once while Redis takes no writes, and has changed nothing", async () => {
    const frame = frameOf(1_000);
    await sequences.copies.import(change(500), frame);
    const to = elsewhere(500);
    await lab.redis.config("SET", "maxmemory", "1");
    try {
      const refused = { code: "unavailable" };
      await expect(sequences.copies.import(change(600), frame)).rejects.toMatchObject(refused);
      await expect(sequences.copies.fork(change(500), change(to).id, undefined)).rejects.toMatchObject(refused);
    } finally {
      await lab.redis.config("SET", "maxmemory", "0");
    }
    for (const id of [600, to]) {
      await expect(sequences.describe(change(id))).rejects.toMatchObject({ code: "sequence_unknown" });
    }
  });
});
