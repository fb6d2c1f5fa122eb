import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { encodeFrame } from "#shared/frame.js";
import { Solitude } from "../../worker/batch/solitude.js";
import { batchWork } from "../../worker/batch/work.js";
import { RedisClock } from "#shared/redis/clock.js";
import { connectBlockingReader } from "#shared/redis/connect.js";
import { Connections } from "#shared/redis/connections.js";
import { openLane } from "../../worker/lane.js";
import type { RunResult } from "../../worker/model/host.js";
import type { ServingModel } from "../../worker/model/serving.js";
import { admitRequest, admitStep, silentBus, take, useLab, type Lab } from "./lab.js";

/** A stateless model whose runs last until the test ends them. */
function slowModel() {
  const begun: (() => void)[] = [];
  const model: ServingModel = {
    name: "m",
    version: "1",
    batched: true,
    limits: { maxBatchSize: 4, maxDelayMs: 0, preferred: [] },
    controls: [],
    states: [],
    maxIdleMs: undefined,
    host: {
      graph: { inputs: [], outputs: [] },
      run: () =>
        new Promise<RunResult>((resolve) => {
          begun.push(() => resolve({ outputs: [], ranMs: 1, letGo: () => undefined }));
        }),
      close: () => Promise.resolve(),
    },
  };
  return { model, begun };
}

function open({ queue }: Lab, url: string, model: ServingModel) {
  const log = pino({ level: "silent" });
  return openLane({
    queue,
    reader: connectBlockingReader({ url, name: "reader", log }),
    work: batchWork(model, { solitude: new Solitude(), limits: { maxStateBytes: 1_000 }, maxRunsAlone: 3 }),
    bus: silentBus,
    clock: new RedisClock(),
    connections: new Connections(queue.redis, log),
    leaseMs: 5_000,
    stateCacheBytes: 1_000,
    log,
  });
}

const body = encodeFrame({ outputs: [] }, []).toString("latin1");

describe("drain", () => {
  const lab = useLab();

  it("hands back what its last read brings while a batch still runs", async () => {
    const { model, begun } = slowModel();
    const lane = await open(lab, lab.url, model);
    await admitRequest(lab, "running", "", 100, body);
    await expect.poll(() => begun.length).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 50)); // the next read has begun to block
    const drained = lane.drain();
    await admitRequest(lab, "late", "", 100, body);
    await expect
      .poll(async () => (await take(lab.other)).map(({ request }) => request), { timeout: 2_000 })
      .toEqual(["late"]);
    begun[0]?.();
    await drained;
    expect(await take(lab.other)).toEqual([]);
  });

  it("sets a sequence's step aside that stands in the queue of a stateless model", async () => {
    const { model, begun } = slowModel();
    const lane = await open(lab, lab.url, model);
    await admitStep(lab, { request: "r1", start: true, body });
    await expect.poll(() => lab.redis.xlen(`dead:{${lab.lane.model}:1:0}`)).toBe(1);
    expect(begun).toEqual([]);
    await lane.drain();
  });
});
