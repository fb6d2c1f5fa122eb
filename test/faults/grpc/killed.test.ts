/**
 * Streams of gRPC under which workers, gateways, NATS and Redis are killed: clients that resume by
 * their keys read the answers of an undisturbed run, with no gap, repetition or reordering.
 */
import { expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { GrpcClient, int32s, type Message } from "../../protocols/grpc/client.js";
import { ResumingClient } from "../../protocols/grpc/resuming.js";
import { nth, pause } from "../pace.js";
import { grpcScale } from "../scale.js";

const { sequences, steps, generations, kills, timeoutMs } = grpcScale;
const running = useFleet({ models: ["accumulate", "gen-mha"], gateways: 3, workers: 3, grpc: true });

const step = (value: number): Message => ({
  model_name: "accumulate",
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1] }],
  raw_input_contents: [int32s(value)],
});
const TOKENS = 60;
const given = { max_tokens: TOKENS, temperature: 0, ignore_eos: true };
const prompt = (i: number): Message => ({
  model_name: "gen-mha",
  inputs: [
    { name: "text_input", datatype: "BYTES", shape: [1, 1], contents: { bytes_contents: [Buffer.from(`ab${i % 5}`)] } },
  ],
});

interface Answer {
  readonly parameters: Readonly<Record<string, { readonly int64_param?: string }>>;
  readonly raw_output_contents: readonly Buffer[];
}

const answerIn = (message: Message | undefined): Answer => message?.["infer_response"] as Answer;
const textOf = (parts: readonly Message[]): string =>
  parts.map((part) => answerIn(part).raw_output_contents[0]?.subarray(4).toString() ?? "").join("");

async function runSequence(client: ResumingClient, id: number): Promise<void> {
  let sum = 0;
  let sent = 0;
  // A few steps are under way at a time, as a client sends that does not wait for answers.
  const answers: Promise<readonly Message[]>[] = [];
  for (let i = 0; i < steps; i++) {
    while (sent < Math.min(steps, i + 4)) {
      sent++;
      const flags = { sequence_start: sent === 1, sequence_end: sent === steps };
      answers.push(client.ask({ id: `${id}/${sent}`, message: step(sent + id), given: { sequence_id: id, ...flags } }));
    }
    const [message] = (await answers[i]) ?? [];
    sum += i + 1 + id;
    const { parameters, raw_output_contents: raw } = answerIn(message);
    expect([raw[0]?.readInt32LE(), parameters["sequence_step"]?.int64_param]).toEqual([sum, String(i + 1)]);
  }
}

it(
  "read as if nothing had happened",
  async () => {
    const { gateways, workers, nats, redis } = running.fleet;
    const targets = gateways.map(({ grpc }) => grpc);
    const calm = new GrpcClient(targets[0] ?? "");
    const texts: string[] = [];
    for (let i = 0; i < 5; i++) {
      const alone = new ResumingClient(targets, 0);
      texts.push(textOf(await alone.ask({ id: `calm-${i}`, message: prompt(i), given })));
      alone.close();
    }
    const clients = Array.from({ length: 4 }, (_, i) => new ResumingClient(targets, i));
    const asked = { sequences: 0, generations: 0 };
    let broke = 0;
    const work = Promise.all([
      ...Array.from({ length: sequences }, async (_, i) => {
        do await runSequence(nth(clients, i), ++asked.sequences);
        while (broke < kills * blows.length);
      }),
      ...Array.from({ length: generations }, async (_, i) => {
        do {
          const id = `g-${++asked.generations}`;
          const parts = await nth(clients, i).ask({ id, message: prompt(i), given });
          expect(textOf(parts)).toBe(texts[i % 5]);
        } while (broke < kills * blows.length);
      }),
    ]);
    const blows = [
      async (i: number) => nth(workers, i).restart(),
      async (i: number) => nth(gateways, i).member.restart(),
      async () => {
        await nats.kill();
        await pause(300);
        await nats.restart();
      },
      async () => {
        await redis.kill();
        await pause(300);
        await redis.restart();
      },
    ];
    const breaking = (async () => {
      for (let i = 0; i < kills * blows.length; i++) {
        await pause(500);
        await nth(blows, i)(Math.floor(i / blows.length));
        broke++;
      }
    })();
    await Promise.all([work, breaking]);
    const resumed = clients.reduce((sum, one) => sum + one.resumed, 0);
    const statuses = [...new Set(clients.flatMap((one) => [...one.statuses]))];
    for (const client of clients) client.close();
    calm.close();
    console.log(`grpc-killed: ${JSON.stringify({ ...asked, broke, resumed, statuses })}`);
    expect(resumed).toBeGreaterThan(0);
    // A stream that breaks is UNAVAILABLE, which every client repeats; a cancelled one is ours.
    expect(statuses.filter((status) => ![14, 1, 13].includes(status))).toEqual([]);
  },
  timeoutMs,
);
