/**
 * An ensemble with two stateful steps while processes die: each request takes effect in both steps
 * or in none, once. An ensemble with a decoupled step or a generator goes on at another worker, and
 * no client reads an answer twice, or misses one.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { ensembles, makeEnsembles, remembered, writingEnsembles } from "../../fixtures/ensembles.js";
import { GrpcClient, parameters, type Message } from "../../protocols/grpc/client.js";
import { makeRepository } from "../../support/fleet/repository.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { nth, repeatedly } from "../pace.js";
import { ensembleScale as scale } from "../scale.js";

const repository = mkdtempSync(join(tmpdir(), "baton-ensembles-"));
afterAll(() => rmSync(repository, { recursive: true }));
const models = ["remembers", "tells-twice-slowly", "tells-of-totals", "writes"] as const;
makeRepository(repository, ["gen-cheap"]);
makeEnsembles(
  repository,
  Object.fromEntries(models.map((name) => [name, { ...ensembles, ...writingEnsembles }[name] ?? ""])),
);
const running = useFleet({
  repository,
  models: [],
  serving: models,
  workers: 3,
  gateways: 2,
  direct: true,
  grpc: true,
});

/** How long a client asks for one outcome. */
const PATIENCE_MS = 60_000;

/** Asks under the same key, from gateway to gateway, until there is an outcome. */
async function answered(key: string, body: object): Promise<Record<string, readonly number[]>> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  for (let attempt = 0; ; attempt++) {
    const url = nth(running.fleet.urls, attempt);
    const answer = await fetch(`${url}/v2/models/remembers/infer`, {
      method: "POST",
      headers: { "idempotency-key": key },
      body: JSON.stringify(body),
    })
      .then(async (response) => ({ status: response.status, text: await response.text() }))
      .catch((error: unknown) => ({ status: 599, text: String(error) }));
    if (answer.status === 200) {
      const { outputs } = JSON.parse(answer.text) as { outputs: { name: string; data: readonly number[] }[] };
      return Object.fromEntries(outputs.map(({ name, data }) => [name, data]));
    }
    if (answer.status < 500 || performance.now() > giveUpAt) throw new Error(`${answer.status} ${answer.text}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** One sequence, step after step, compared with a bare loop. */
async function remember(id: number, steps: number): Promise<void> {
  const inputs = Array.from({ length: steps }, (_, i) => (id * 7 + i * 3) % 11);
  const expected = remembered(inputs);
  for (const [i, value] of inputs.entries()) {
    const body = {
      parameters: { sequence_id: id, sequence_start: i === 0, sequence_end: i === steps - 1 },
      inputs: [{ name: "IN", datatype: "FP32", shape: [1, 1], data: [value] }],
    };
    expect(await answered(`${id}/${i}`, body)).toEqual(expected[i]);
  }
}

it(
  "takes effect in all of its stateful steps or in none, while a process dies every second",
  async () => {
    const { workers, gateways, redis, nats } = running.fleet;
    let over = false;
    const isOver = () => over;
    let requests = 0;
    let ids = 0;
    const client = async () => {
      while (!isOver() || requests < scale.requests) {
        await remember(++ids, scale.steps);
        requests += scale.steps;
      }
    };
    const working = Promise.all(Array.from({ length: scale.clients }, client));
    try {
      const kinds = [
        (i: number) => nth(workers, i).restart(),
        (i: number) => nth(gateways, i).member.restart(),
        async () => {
          await redis.kill();
          await redis.restart();
        },
        (i: number) => nth(workers, i).restart(),
        async () => {
          await nats.kill();
          await nats.restart();
        },
      ];
      await Promise.race([working, repeatedly(scale.kills, 1_000, (i) => nth(kinds, i)(i))]);
    } finally {
      over = true;
    }
    await working;
    console.log(`ensembles: ${requests} requests of ${ids} sequences, ${scale.kills} kills`);
    expect(requests).toBeGreaterThanOrEqual(scale.requests);
  },
  scale.timeoutMs,
);

interface InferAnswer {
  readonly parameters: Readonly<Record<string, { readonly int64_param?: string }>>;
  readonly raw_output_contents: readonly Buffer[];
}

const totals = (count: number) => Array.from({ length: count }, (_, at) => ((at + 1) * (at + 2)) / 2);
/** Ensembles with a decoupled step: how far their requests count, and what they answer then. */
const telling = [
  { model: "tells-twice-slowly", most: 40, answered: (upTo: number) => totals(upTo).map((total) => 2 * total) },
  { model: "tells-of-totals", most: 6, answered: (upTo: number) => totals(upTo).flatMap(totals) },
];

it.each(telling)(
  "passes on the answers of a decoupled step of $model in order and once, while workers are killed and leave",
  async ({ model, most, answered }) => {
    const client = new GrpcClient(running.fleet.gateways[0]?.grpc ?? "");
    let over = false;
    const isOver = () => over;
    let answers = 0;
    const stream = async (i: number) => {
      for (let round = 0; round === 0 || !isOver(); round++) {
        const upTo = 5 + ((i * 7 + round) % most);
        const expected = answered(upTo);
        const open = client.stream();
        open.send({
          model_name: model,
          id: `${i}/${round}`,
          inputs: [{ name: "N", datatype: "FP32", shape: [1, 1], contents: { fp32_contents: [upTo] } }],
          parameters: parameters({ idempotency_key: `${model}/${i}/${round}` }),
        });
        const messages = await open.finish();
        expect(messages.map((message: Message) => message["error_message"]).filter((text) => text !== "")).toEqual([]);
        const all = messages.map((message) => message["infer_response"] as InferAnswer);
        expect(all.map(({ raw_output_contents: [raw] }) => raw?.readFloatLE())).toEqual(expected);
        const numbers = all.map((answer) => Number(answer.parameters["response_index"]?.int64_param));
        expect(numbers).toEqual(expected.map((_, at) => at));
        answers += all.length;
      }
    };
    const working = Promise.all(Array.from({ length: 8 }, (_, i) => stream(i)));
    try {
      const { workers } = running.fleet;
      await Promise.race([
        working,
        repeatedly(scale.workerKills, 700, async (i) => {
          const worker = nth(workers, i);
          if (i % 3 !== 2) return worker.restart();
          await worker.terminate();
          await worker.start();
        }),
      ]);
    } finally {
      over = true;
    }
    await working;
    client.close();
    console.log(`ensembles: ${answers} answers`);
    expect(answers).toBeGreaterThan(0);
  },
  scale.timeoutMs,
);

it(
  "gives the texts of an undisturbed generator, in order and once, although all workers die in their midst",
  async () => {
    const client = new GrpcClient(running.fleet.gateways[0]?.grpc ?? "");
    const begin = (i: number, key: string) => {
      const open = client.stream();
      open.send({
        model_name: "writes",
        inputs: [
          { name: "IN", datatype: "BYTES", shape: [1, 1], contents: { bytes_contents: [Buffer.from(`tale ${i}`)] } },
        ],
        parameters: parameters({ max_tokens: 400, temperature: 1, seed: i, ignore_eos: true, idempotency_key: key }),
      });
      return open;
    };
    const textsIn = (messages: readonly Message[]) => {
      expect(messages.map((message) => message["error_message"]).filter((text) => text !== "")).toEqual([]);
      const all = messages.map((message) => message["infer_response"] as InferAnswer);
      const indexes = all.map((answer) => Number(answer.parameters["response_index"]?.int64_param));
      expect(indexes).toEqual([...all.keys()]);
      return all.map(({ raw_output_contents: [raw] }) => raw?.toString("utf8", 4));
    };
    const numbers = Array.from({ length: 8 }, (_, i) => i);
    const undisturbed = await Promise.all(
      numbers.map(async (i) => textsIn(await begin(i, `undisturbed ${i}`).finish())),
    );
    const streams = numbers.map((i) => begin(i, `disturbed ${i}`));
    // Each further worker begins the texts anew.
    for (let kill = 0; kill < 2; kill++) {
      const open = streams.filter((stream, i) => stream.messages.length < (undisturbed[i]?.length ?? 0));
      expect(open.length).toBeGreaterThan(0);
      await Promise.all(open.map((stream) => stream.received(stream.messages.length + 2).catch(() => undefined)));
      await Promise.all(running.fleet.workers.map((worker) => worker.restart()));
    }
    const disturbed = await Promise.all(streams.map(async (stream) => textsIn(await stream.finish())));
    expect(disturbed).toEqual(undisturbed);
    client.close();
  },
  scale.timeoutMs,
);
