/**
 * A flood against a Redis of 256 MB: steps that wait, large bodies, and results to keep. Requests
 * past the limits are refused in words. Accepted requests are answered, and the queue drains
 * without an operator. A client of another tenant notices nothing.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Member } from "../../support/fleet/member.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { neighbour, type Asked, type Neighbour } from "../../support/fleet/neighbour.js";
import { ask, stepBody, type Said } from "../../edition/ask.js";
import { nth, pause } from "../pace.js";
import { floodScale } from "../scale.js";

const MiB = 1_048_576;
const REDIS_BYTES = 256_000_000;
/** The most requests of one tenant in the queue; the model may have twice as many. */
const TENANT_LIMIT = 1_000;
const HEADER = "x-tenant";
/**
 * Each request has a connection of its own: on a stalled machine this process may send a request on
 * an idle connection that the gateway closes just then.
 */
const flooding = { [HEADER]: "flooding", connection: "close" };
const calm = { [HEADER]: "calm" };
const PATIENCE_MS = 300_000;
/** How many requests of the flood are under way at a time. */
const AT_ONCE = 32;
const AN_HOUR_US = 3_600_000_000;

describe("a flood against a small Redis", () => {
  const served = useFleet({
    gateways: 2,
    models: ["accumulate", "echo-int32", "simple"],
    direct: true,
    env: {
      BATON_TENANT_HEADER: HEADER,
      BATON_QUEUE_LIMIT: String(2 * TENANT_LIMIT),
      BATON_TENANT_QUEUE_LIMIT: String(TENANT_LIMIT),
      BATON_QUEUE_BYTES: String(32 * MiB),
      BATON_TOTAL_QUEUE_BYTES: String(96 * MiB),
      BATON_RESULT_BYTES: String(16 * MiB),
    },
  });
  let flooded: Member;
  let peakBytes = 0;
  const stop = new AbortController();
  const watching: Promise<void>[] = [];
  let beside: Neighbour | undefined;
  /** The latencies of the client beside the flood, by part of the flood. */
  const asked = new Map<string, readonly Asked[]>();

  beforeAll(async () => {
    await served.redis.config("SET", "maxmemory", String(REDIS_BYTES));
    flooded = nth(served.fleet.workers, 0);
    await served.fleet.addWorker({ BATON_MODELS: "simple" });
  });
  afterAll(async () => {
    stop.abort();
    await Promise.all(watching);
    await beside?.stop();
  });

  const urlOf = (i: number) => served.fleet.urls[i % 2] ?? "";
  const ready = async () => (await fetch(`${served.url}/v2/health/ready`)).status;
  const queue = async () =>
    ((await (await fetch(`${served.url}/v2/fleet`)).json()) as { queue: { requests: number; bytes: number } }).queue;

  /**
   * Sends all requests, a few at a time. An answer of 202 accepts a request whose client does not
   * wait.
   */
  async function flood(count: number, send: (i: number) => Promise<Said>): Promise<Said[]> {
    const said: Said[] = [];
    let next = 0;
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        while (next < count) said.push(await send(next++));
      }),
    );
    return said;
  }

  const later = { prefer: "respond-async" };
  const step = (i: number, tenant: Readonly<Record<string, string>> = flooding) => {
    const body = stepBody({ sequence: 1 + (i % 500), value: 1, start: true, parameters: { timeout: AN_HOUR_US } });
    const headers = { ...later, ...tenant };
    return ask(`${urlOf(i)}/v2/models/accumulate/infer`, body, { headers, patienceMs: PATIENCE_MS });
  };
  /** Sends this many bytes as a tensor; the answer is a tensor of the same bytes. */
  const echo = async (i: number, bytes: number, headers: Record<string, string>): Promise<Said> => {
    const binary = { binary_data_size: bytes };
    const inputs = [{ name: "INPUT", datatype: "INT32", shape: [1, bytes / 4], parameters: binary }];
    const outputs = [{ name: "OUTPUT", parameters: { binary_data: true } }];
    const head = JSON.stringify({ parameters: { timeout: AN_HOUR_US }, inputs, outputs });
    const answer = await fetch(`${urlOf(i)}/v2/models/echo-int32/infer`, {
      method: "POST",
      body: new Blob([head, new Uint8Array(bytes)]),
      headers: { ...flooding, ...headers, "inference-header-content-length": String(head.length) },
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    const { status } = answer;
    const said = status < 400 ? {} : ((await answer.json()) as { error: string; code: string });
    if (status < 400) await answer.arrayBuffer();
    return { status, ...said };
  };

  async function watchMemory(): Promise<void> {
    while (!stop.signal.aborted) {
      const used = Number(/used_memory:(\d+)/.exec(await served.redis.info("memory"))?.[1]);
      peakBytes = Math.max(peakBytes, used);
      await pause(50);
    }
  }

  /** 99 of 100 requests had an answer within this many ms. */
  const p99 = (some: readonly Asked[]) => {
    const sorted = some.map(({ ms }) => ms).sort((a, b) => a - b);
    return Math.round(sorted[Math.floor(sorted.length * 0.99)] ?? 0);
  };
  const codes = (said: readonly Said[]) =>
    new Set(said.map(({ status, code, error }) => `${status} ${code ?? (status === 0 ? error : "")}`.trim()));
  const counted = (said: readonly Said[], status: number) => said.filter((one) => one.status === status).length;

  it("is refused in words at the limits, and drained", { timeout: floodScale.timeoutMs }, async () => {
    const calmOne = (beside = neighbour(served.fleet.urls, calm));
    /** Notes a part at its end. The part lasts until the client has asked at least once. */
    const note = async (part: string) => {
      const some: Asked[] = [];
      await expect.poll(async () => some.push(...(await calmOne.tell())), { timeout: PATIENCE_MS }).not.toBe(0);
      asked.set(part, some);
    };
    await pause(floodScale.aloneMs);
    await note("alone");
    watching.push(watchMemory());

    await flooded.kill();
    await note("a worker killed");
    const steps = await flood(floodScale.steps, step);
    expect(codes(steps)).toEqual(new Set(["202", "429 tenant_limit"]));
    expect(counted(steps, 202)).toBe(TENANT_LIMIT);
    // The other tenant still finds room, in the queue of the same model.
    expect((await step(0, calm)).status).toBe(202);
    await note("steps");
    const large = await flood(floodScale.largeBodies, (i) =>
      echo(i, 4 * MiB, { ...later, [HEADER]: `large-${i % 3}` }),
    );
    expect(codes(large)).toEqual(new Set(["202", "503 queue_full"]));
    // A body of 4 MiB takes a little more room, so the eighth does not fit.
    expect(counted(large, 202)).toBe(7);
    expect(large.find(({ status }) => status === 503)?.error).toContain("BATON_QUEUE_BYTES");
    expect(await ready()).toBe(200);
    // The client beside the flood has one request in the queue now and then.
    await expect.poll(queue, { interval: 1 }).toMatchObject({ requests: TENANT_LIMIT + 1 + 7 });

    await note("large bodies");
    await flooded.start();
    await expect.poll(queue, { timeout: PATIENCE_MS }).toMatchObject({ requests: 0, bytes: 0 });

    await note("drained");
    // A gateway that could not reach Redis for some time says so; the key makes a repeat safe.
    const keyed = await flood(floodScale.keyed, async (i) => {
      const ask = () => echo(i, 65_536, { "idempotency-key": `k${i}` });
      let said = await ask();
      while (said.code === "unavailable") said = await ask();
      return said;
    });
    expect(codes(keyed)).toEqual(new Set(["200"]));
    const again = await echo(0, 65_536, { "idempotency-key": "k0" });
    expect(again).toMatchObject({ status: 410, code: "result_expired" });

    expect(await ready()).toBe(200);
    expect(peakBytes).toBeLessThan(REDIS_BYTES);
    await note("kept results");
    stop.abort();
    await Promise.all(watching);
    for (const [part, some] of asked) {
      const said = [...new Set(some.map((one) => one.said))];
      expect([part, said]).toEqual([part, ["200"]]);
    }
    await expect.poll(() => served.redis.keys("open:*"), { timeout: PATIENCE_MS }).toEqual([]);
    const parts = [...asked].map(([part, some]) => `${part} ${p99(some)} ms of ${some.length}`);
    process.stdout.write(
      `flood: the client beside it waited (p99) ${parts.join(", ")}; ` +
        `Redis had at most ${Math.round(peakBytes / 1e6)} MB\n`,
    );
  });
});
