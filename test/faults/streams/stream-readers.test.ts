import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import { seededRandom } from "../../support/fleet/random.js";
import { heldTogether } from "../../support/brokers/resources.js";
import { askFor } from "../../support/streams/ask.js";
import { StreamLab } from "../../support/streams/lab.js";
import { Reader, readSlowly, type SlowReader } from "../../support/streams/reader.js";
import { addressOf, readStored } from "../../support/streams/stored.js";
import { submitInBackground } from "../../support/streams/front-doors.js";
import { nth, pause } from "../pace.js";
import { seed, streamScale } from "../scale.js";

const { timeoutMs } = streamScale;
let lab: StreamLab;

beforeAll(async () => {
  lab = await StreamLab.open({
    seed,
    fleet: { gateways: 2, workers: 1, models: ["gen-mha"] },
    asks: { count: 4, model: "gen-mha", tokens: [10, 20] },
  });
}, timeoutMs);
afterAll(() => lab.close());

const gateway = (i: number) => nth(lab.fleet.urls, i);
const asking = (maxTokens: number) => askFor(maxTokens, "again and again", seed);

describe("a client that reconnects at every index", () => {
  it(
    "has the same list, while the stream runs and when it has ended, at whatever gateway",
    async () => {
      const count = 60;
      // With 40 ms each way, a worker makes at most eight records in a round trip: the stream runs
      // while its readers leave and come back.
      lab.fleet.lines.workerRedis.delay(40);
      const id = await submitInBackground(gateway(0), asking(count));
      const cutAt = async (k: number) => {
        const { records: first } = k === 0 ? { records: [] } : await new Reader(gateway(k), id, -1, k).ended;
        const { records: rest, end } = await new Reader(gateway(k + 1), id, k - 1).ended;
        return { k, records: [...first, ...rest], end: end.kind };
      };
      const every = Array.from({ length: count + 1 }, (_, k) => k);
      const running = await Promise.all(every.map(cutAt));
      lab.fleet.lines.workerRedis.heal();
      const over = await Promise.all(every.map(cutAt));
      const { log } = await readStored(lab.redis, id);
      expect(log).toHaveLength(count);
      const expected = every.map((k) => ({ k, records: log, end: "ended" }));
      expect(running).toEqual(expected);
      expect(over).toEqual(expected);

      const beyond = await new Reader(gateway(0), id, count).ended;
      expect(beyond).toMatchObject({ records: [], end: { kind: "answered", status: 409 } });
      expect(beyond.end).toMatchObject({ body: expect.stringContaining("ahead_of_log") as string });
    },
    timeoutMs,
  );
});

describe("500 clients that resume at once", () => {
  it(
    "are served from the log: nothing is queued or generated again",
    async () => {
      const { redis, fleet } = lab;
      const count = 200;
      fleet.lines.workerRedis.delay(40);
      const id = await submitInBackground(gateway(0), asking(count));
      await new Reader(gateway(0), id, -1, 20).ended;
      const before = { admitted: await admitted(id), calls: await calls() };
      const random = seededRandom(seed).fork("stampede");
      const begunAt = performance.now();
      const readings = Array.from({ length: streamScale.stampede }, async (_, i) => {
        const after = random.between(-1, 19);
        const { records, end } = await new Reader(gateway(i), id, after).ended;
        return { after, records, end: end.kind, tookMs: performance.now() - begunAt };
      });
      const all = await Promise.all(readings);
      const after = { admitted: await admitted(id), calls: await calls() };
      fleet.lines.workerRedis.heal();

      const { log, takenAt } = await readStored(redis, id);
      const slowest = Math.max(...all.map(({ tookMs }) => tookMs));
      console.log(
        `stampede of ${all.length}: the last one ended after ${Math.round(slowest)} ms; ${after.calls - before.calls} calls of Redis for ${all.length * (count - 10)} records`,
      );
      const right = all.filter(({ after, records, end }) => {
        return end === "ended" && records.join("\n") === log.slice(after + 1).join("\n");
      });
      expect(right).toHaveLength(streamScale.stampede);
      expect(log).toHaveLength(count);
      expect(takenAt).toBeUndefined();
      expect(after.admitted).toBe(before.admitted);

      async function calls(): Promise<number> {
        return Number(/total_commands_processed:(\d+)/.exec(await redis.info("stats"))?.[1]);
      }
    },
    timeoutMs,
  );

  /** How many entries the queue of its model and bucket ever had. */
  async function admitted(id: string): Promise<number> {
    const { bucket, model } = addressOf(id);
    const streams = await lab.redis.keys(`ready:${bucketTag(bucket)}:${model}:*`);
    const counts = streams.map(async (ready) => {
      const info = (await lab.redis.xinfo("STREAM", ready)) as unknown[];
      return Number(info[info.indexOf("entries-added") + 1]);
    });
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  }
});

describe("readers that take nothing, or 1 KiB a second", () => {
  it(
    "cost the gateway next to no memory, and others nothing",
    async () => {
      const { fleet, redis } = lab;
      // 12 choices with 20 log probabilities a token make long records: more than all buffers
      // between gateway and client hold.
      const parameters = { max_tokens: 540, temperature: 1, seed, n: 12, logprobs: 20 };
      const id = await submitInBackground(gateway(0), {
        name: "large",
        model: "gen-mha",
        prompt: [9, 8, 7],
        parameters,
      });
      const others = await new Reader(gateway(1), id).ended;
      const { log } = await readStored(redis, id);
      expect(others.records).toEqual(log);
      const bytes = log.reduce((sum, record) => sum + Buffer.byteLength(record), 0);
      expect(bytes).toBeGreaterThan(6 * MIB);

      // V8 takes memory for passing records in any case. The test judges the memory that slow
      // readers add.
      const quick = await Promise.all(Array.from({ length: QUICK_READERS }, () => new Reader(gateway(0), id).ended));
      for (const { records } of quick) expect(records).toEqual(log);
      const before = await resources();
      const readers = await Promise.all(
        Array.from({ length: streamScale.slowReaders }, (_, i) =>
          readSlowly(gateway(0), id, i % 2 === 0 ? "nothing" : "1 KiB/s"),
        ),
      );
      const watching = new AbortController();
      const most = watchMost(async () => (await resources()).rssBytes, watching.signal);
      const beside = await new Reader(gateway(0), id).ended;
      await pause(2_000);
      expect(await held()).toBeGreaterThanOrEqual(streamScale.slowReaders);
      await pause(streamScale.slowReadersMs);
      watching.abort();
      const grown = (await most) - before.rssBytes;
      const left = await held();
      console.log(
        `${readers.length} slow readers of ${Math.round(bytes / MIB)} MiB: at most ${Math.round(grown / MIB)} MiB more than before; after ${streamScale.slowReadersMs / 1_000 + 2} s ${left} of them are left`,
      );
      expect(grown).toBeLessThan(64 * MIB);
      expect(beside.records).toEqual(log);
      // The readers that took nothing are gone, or the gateway would hold them for ever.
      if (streamScale.slowReadersMs > STALL_MS) expect(left).toBeLessThanOrEqual(readers.length / 2);
      for (const reader of readers) reader.close();

      /**
       * How many of the readers' connections the gateway holds. A client that takes nothing does
       * not notice a cut.
       */
      function held(): Promise<number> {
        return connectionsOf(Number(new URL(gateway(0)).port), readers);
      }

      function resources() {
        return heldTogether([nth(fleet.gateways, 0).member.process.pid]);
      }
    },
    timeoutMs,
  );
});

const MIB = 1_048_576;
const QUICK_READERS = 16;
/** The gateway cuts a client that has taken nothing for this long (gateway/http/sse.ts). */
const STALL_MS = 30_000;

/** How many connections the process behind a port has open from these readers. */
async function connectionsOf(port: number, readers: readonly SlowReader[]): Promise<number> {
  const peers = new Set(readers.map(({ port: own }) => own));
  const rows = (await readFile("/proc/net/tcp", "utf8")).trim().split("\n").slice(1);
  return rows.filter((row) => {
    const [, local = "", remote = "", state = ""] = row.trim().split(/\s+/);
    const [own, peer] = [local, remote].map((address) => parseInt(address.split(":")[1] ?? "", 16));
    return own === port && peers.has(peer ?? 0) && (state === ESTABLISHED || state === CLOSE_WAIT);
  }).length;
}

/** States of a connection, as in /proc/net/tcp. */
const ESTABLISHED = "01";
const CLOSE_WAIT = "08";

/** The highest value until `signal` aborts. */
async function watchMost(value: () => Promise<number>, signal: AbortSignal): Promise<number> {
  let most = 0;
  while (!signal.aborted) {
    most = Math.max(most, await value());
    await pause(100);
  }
  return most;
}
