/** Sequences that share a stream with a slow one: their latency beside it, and without it. */
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { GrpcClient, int32s, parameters, type Message } from "../../protocols/grpc/client.js";
import { configWith, makeRepository } from "../../support/fleet/repository.js";
import type { BenchFleet } from "../support/fleet.js";
import { percentiles, type Percentiles } from "../support/statistics.js";
import type { Timing } from "../steps/scenarios.js";

export interface SharedCost {
  /** Of the quick sequences: alone, beside the slow one, and beside it on a stream in order. */
  readonly aloneMs: Percentiles;
  readonly besideMs: Percentiles;
  readonly orderedMs: Percentiles;
  readonly checked: number;
  readonly wrong: number;
}

const QUICK = "accumulate";
/** The same on a simulated device, which takes so long for a step and no CPU. */
const SLOW = "accumulate-slow";
const SLOW_MS = 500;
const SEQUENCES = 63;

/** The parts of a measurement, each kind as often early as late. */
const PARTS = ["alone", "beside", "ordered", "ordered", "beside", "alone"] as const;

/** Adds both models to a repository. */
export function makeSharedModels(folder: string): void {
  makeRepository(folder, [QUICK]);
  cpSync(join(folder, QUICK), join(folder, SLOW), { recursive: true });
  const config = configWith(QUICK, "execute_delay_ms", String(SLOW_MS));
  writeFileSync(join(folder, SLOW, "config.pbtxt"), config.replace(`name: "${QUICK}"`, `name: "${SLOW}"`));
}

export async function measureShared({ grpcPort }: BenchFleet, timing: Timing): Promise<SharedCost> {
  const client = new GrpcClient(`127.0.0.1:${grpcPort}`);
  const latencies = { alone: [] as number[], beside: [] as number[], ordered: [] as number[] };
  const count = { checked: 0, wrong: 0 };
  const partMs = timing.measureMs / 2;
  try {
    await new Part(client, "beside", count).run(timing.warmupMs);
    for (const kind of PARTS) latencies[kind].push(...(await new Part(client, kind, count).run(partMs)));
  } finally {
    client.close();
  }
  const [aloneMs, besideMs, orderedMs] = PARTS.slice(0, 3).map((kind) => percentiles(latencies[kind]));
  if (aloneMs === undefined || besideMs === undefined || orderedMs === undefined) throw new Error("no part has run");
  return { aloneMs, besideMs, orderedMs, ...count };
}

let sequences = 0;

/** A stream on which each sequence sends its next step when it has the answer to the last one. */
class Part {
  readonly #stream: ReturnType<GrpcClient["stream"]>;
  readonly #waiting = new Map<string, (message: Message) => void>();
  readonly #count: { checked: number; wrong: number };
  readonly #hasSlow: boolean;
  #isOver = false;

  constructor(client: GrpcClient, kind: (typeof PARTS)[number], count: { checked: number; wrong: number }) {
    this.#count = count;
    this.#hasSlow = kind !== "alone";
    this.#stream = client.stream(kind === "ordered" ? {} : { "baton-unordered": "true" });
    this.#stream.call.on("data", (message: Message) => {
      this.#waiting.get((message["infer_response"] as { id: string }).id)?.(message);
    });
  }

  /** @returns the latencies of the quick sequences, in ms */
  async run(ms: number): Promise<number[]> {
    const latencies: number[] = [];
    const quick = Array.from({ length: SEQUENCES }, () => this.#sequence(QUICK, latencies));
    const slow = this.#hasSlow ? [this.#sequence(SLOW, [])] : [];
    setTimeout(() => (this.#isOver = true), ms);
    await Promise.all([...quick, ...slow]);
    await this.#stream.finish();
    return latencies;
  }

  async #sequence(model: string, latencies: number[]): Promise<void> {
    const sequence = ++sequences;
    const id = String(sequence);
    let sum = 0;
    for (let step = 1, isLast = false; !isLast; step++) {
      isLast = this.#isOver;
      const since = performance.now();
      const answered = new Promise<Message>((resolve) => this.#waiting.set(id, resolve));
      this.#stream.send({
        model_name: model,
        id,
        inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1] }],
        raw_input_contents: [int32s(step)],
        parameters: parameters({ sequence_id: sequence, sequence_start: step === 1, sequence_end: isLast }),
      });
      const message = await answered;
      latencies.push(performance.now() - since);
      const { raw_output_contents: raw } = message["infer_response"] as { raw_output_contents: Buffer[] };
      this.#count.checked++;
      if (raw[0]?.readInt32LE() !== (sum += step)) this.#count.wrong++;
    }
  }
}
