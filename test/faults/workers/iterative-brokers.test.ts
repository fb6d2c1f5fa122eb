/**
 * Requests that run many times, over a Cluster, beside a NATS that is away, and in a full Redis:
 * each gets its answers once and in order, also if its worker dies meanwhile.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { iterating } from "../../fixtures/iterating.js";
import { GrpcClient, type Message } from "../../protocols/grpc/client.js";
import { ask, input } from "../../spec/ask.js";
import { clusterStore } from "../../support/fleet/cluster-store.js";
import { makeModels } from "../../support/fleet/made-model.js";
import { useFleet, type RunningFleet } from "../../support/fleet/use-fleet.js";
import { pause } from "../pace.js";

const repository = mkdtempSync(join(tmpdir(), "baton-iterating-"));
afterAll(() => rmSync(repository, { recursive: true }));
const models = ["tells-slowly", "counts-slowly"] as const;
makeModels(
  repository,
  Object.fromEntries(Object.entries(iterating).filter(([name]) => models.some((m) => m === name))),
);
const plan = { repository, models: [], serving: models, workers: 2, grpc: true };

const totals = (count: number): number[] => Array.from({ length: count }, (_, i) => ((i + 1) * (i + 2)) / 2);

/** Asks for the answers of so many runs. @param onBegun told how many have come, when some have */
async function tell(
  running: RunningFleet,
  upTo: number,
  onBegun?: (come: () => number) => Promise<void>,
): Promise<void> {
  const client = new GrpcClient(running.fleet.gateways[0]?.grpc ?? "");
  const stream = client.stream();
  const contents = { fp32_contents: [upTo] };
  stream.send({
    model_name: "tells-slowly",
    id: "tells",
    inputs: [{ name: "N", datatype: "FP32", shape: [1, 1], contents }],
  });
  await stream.received(3);
  await onBegun?.(() => stream.messages.length);
  const values = (await stream.finish()).map((message: Message) => {
    const { raw_output_contents: raw } = message["infer_response"] as {
      readonly raw_output_contents: readonly Buffer[];
    };
    return raw[0]?.readFloatLE();
  });
  client.close();
  expect(values).toEqual(totals(upTo));
}

async function count({ url }: RunningFleet, upTo: number): Promise<void> {
  const { outputs } = await ask(url, "counts-slowly", { inputs: [input("N", "FP32", [1, 1], [upTo])] });
  expect(outputs).toEqual({ TOTAL: [(upTo * (upTo + 1)) / 2] });
}

describe("over a Cluster", async () => {
  const running = useFleet({ ...plan, store: await clusterStore() });
  it("goes on at another worker", async () => {
    const work = Array.from({ length: 10 }, (_, i) => (i % 2 === 0 ? tell(running, 60) : count(running, 60)));
    await pause(600);
    await running.fleet.workers[0]?.restart();
    await Promise.all(work);
  }, 60_000);
});

describe("beside one Redis", () => {
  const running = useFleet(plan);
  it("reads its answers from the log while NATS is away", async () => {
    const { nats } = running.fleet;
    await tell(running, 200, async () => {
      await nats.kill();
      await pause(2_000);
      await nats.restart();
    });
  }, 60_000);

  it("goes on at another worker although a full Redis takes no checkpoints", async () => {
    const room = (most: string) => running.redis.config("SET", "maxmemory", most);
    const kill = async (come: () => number) => {
      // One of the workers has the request; whichever it is, the other one takes it over.
      for (const worker of running.fleet.workers) {
        await room("1mb");
        await worker.kill();
        const before = come();
        await expect.poll(come, { timeout: 20_000 }).toBeGreaterThan(before + 60);
        await room("0");
        await worker.start();
      }
    };
    try {
      await tell(running, 600, kill);
    } finally {
      await room("0");
    }
    expect(await running.redis.keys("dead:*")).toEqual([]);
  }, 90_000);
});
