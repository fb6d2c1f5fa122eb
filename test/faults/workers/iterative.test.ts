/**
 * Requests that run many times, while workers die and leave: each goes on at another worker from
 * its last checkpoint, and no client reads an answer twice, or misses one.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { iterating } from "../../fixtures/iterating.js";
import { GrpcClient, parameters, type Message } from "../../protocols/grpc/client.js";
import { ask, input } from "../../spec/ask.js";
import { makeModels } from "../../support/fleet/made-model.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { nth, repeatedly } from "../pace.js";
import { scale } from "../scale.js";

const repository = mkdtempSync(join(tmpdir(), "baton-iterating-"));
afterAll(() => rmSync(repository, { recursive: true }));
const models = ["counts-slowly", "tells-slowly"] as const;
makeModels(
  repository,
  Object.fromEntries(Object.entries(iterating).filter(([name]) => models.some((m) => m === name))),
);
const running = useFleet({
  repository,
  models: [],
  serving: models,
  workers: 3,
  gateways: 1,
  direct: true,
  grpc: true,
});

const LONGEST = 40;
const total = (upTo: number): number => (upTo * (upTo + 1)) / 2;

interface InferAnswer {
  readonly id: string;
  readonly parameters: Readonly<Record<string, { readonly bool_param?: boolean; readonly int64_param?: string }>>;
  readonly raw_output_contents: readonly Buffer[];
}

const answerIn = (message: Message): InferAnswer => message["infer_response"] as InferAnswer;

const telling = (id: string, upTo: number): Message => ({
  model_name: "tells-slowly",
  id,
  inputs: [{ name: "N", datatype: "FP32", shape: [1, 1], contents: { fp32_contents: [upTo] } }],
  parameters: parameters({ idempotency_key: id }),
});

/** Asks for streams of answers and for single answers, until `isOver`; checks each of them. */
async function work(isOver: () => boolean): Promise<{ answers: number; requests: number }> {
  const client = new GrpcClient(running.fleet.gateways[0]?.grpc ?? "");
  const done = { answers: 0, requests: 0 };
  const stream = async (i: number): Promise<void> => {
    for (let round = 0; round === 0 || !isOver(); round++) {
      const upTo = 5 + ((i * 7 + round) % LONGEST);
      const open = client.stream();
      open.send(telling(`${i}/${round}`, upTo));
      const messages = await open.finish();
      expect(messages.map((message) => message["error_message"]).filter((text) => text !== "")).toEqual([]);
      const answers = messages.map(answerIn);
      expect(answers.map(({ raw_output_contents: [raw] }) => raw?.readFloatLE())).toEqual(
        Array.from({ length: upTo }, (_, at) => total(at + 1)),
      );
      expect(answers.map((answer) => Number(answer.parameters["response_index"]?.int64_param))).toEqual(
        Array.from({ length: upTo }, (_, at) => at),
      );
      done.answers += upTo;
    }
  };
  const single = async (i: number): Promise<void> => {
    for (let round = 0; round === 0 || !isOver(); round++) {
      const upTo = 5 + ((i * 11 + round) % LONGEST);
      const inputs = [input("N", "FP32", [1, 1], [upTo])];
      const { status, outputs } = await ask(running.url, "counts-slowly", { inputs });
      expect([status, outputs]).toEqual([200, { TOTAL: [total(upTo)] }]);
      done.requests++;
    }
  };
  const asked = Array.from({ length: 12 }, (_, i) => (i % 2 === 0 ? stream(i) : single(i)));
  try {
    await Promise.all(asked);
  } finally {
    client.close();
  }
  return done;
}

async function workThrough(kills: number, blow: (i: number) => Promise<unknown>): Promise<void> {
  let over = false;
  const working = work(() => over);
  try {
    await repeatedly(kills, 700, blow);
  } finally {
    over = true;
  }
  const done = await working;
  console.log(`iterative: ${JSON.stringify(done)}`);
  expect(done.answers).toBeGreaterThan(0);
}

it(
  "goes on from its last checkpoint while workers are killed",
  () => workThrough(scale.workerKills, async (i) => nth(running.fleet.workers, i).restart()),
  scale.timeoutMs,
);

it(
  "goes on while workers leave by themselves",
  () =>
    workThrough(4, async (i) => {
      const worker = nth(running.fleet.workers, i);
      await worker.terminate();
      await worker.start();
    }),
  scale.timeoutMs,
);

it("leaves nothing in Redis but checkpoints of workers that died behind a commit, which lapse", async () => {
  const left = await running.redis.keys("run:*");
  const lives = await Promise.all(left.map((key) => running.redis.pttl(key)));
  expect(left.length).toBeLessThan(scale.workerKills * 4);
  for (const ms of lives) expect(ms).toBeGreaterThan(0);
});
