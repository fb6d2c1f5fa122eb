/**
 * What counting takes for a step and for a token, over all processes, in loops over the functions
 * that count. A fleet would show it only as noise: a step takes a hundred times as much.
 */
import { countAdmission, countCall } from "../../../gateway/admission/counts.js";
import { HttpCounts } from "../../../gateway/http/counts.js";
import { endsOf } from "../../../gateway/outcomes/counts.js";
import { Cells } from "#shared/metrics/cells.js";
import { servedModel } from "../../fixtures/served-models.js";
import { ModelCounts, type RunTimes } from "../../../worker/lane/counts.js";
import type { Settled } from "../../../worker/lane/settle.js";
import { StreamCounts, StreamFigures } from "../../../worker/streams/counts.js";

export interface CountingCost {
  readonly stepUs: number;
  readonly tokenUs: number;
  readonly checked: number;
  readonly wrong: number;
}

/** Steps of a batch, and requests of a call that admits, as under 64 connections. */
const BATCH = 16;
const BATCHES = 20_000;
const TOKENS = 500_000;
/** Readings of the clock that only figures need: four for a batch, and two for an answer. */
const READINGS = { ofBatch: 4, ofAnswer: 2 };

export function measureCounting(): CountingCost {
  const worker = countsOfSteps();
  const gateway = countsOfAnswers();
  const stepUs = cpuUs(() => {
    for (let i = 0; i < BATCHES; i++) {
      worker.batch();
      gateway.call();
    }
  }, BATCHES * BATCH);
  const token = countsOfTokens();
  const tokenUs = cpuUs(() => {
    for (let i = 0; i < TOKENS; i++) token.append(i);
  }, TOKENS);
  // The page says that the loops have counted.
  const counted = [
    worker.cells.page().includes(`nv_inference_request_success{model="m",version="1"} ${2 * BATCHES * BATCH}\n`),
    token.cells.page().includes(`baton_generated_tokens_total{model="m",version="1"} ${2 * TOKENS}\n`),
  ];
  return { stepUs, tokenUs, checked: counted.length, wrong: counted.filter((isRight) => !isRight).length };
}

/** @returns µs of CPU for each of `count` things; the first run is for the compiler */
function cpuUs(run: () => void, count: number): number {
  run();
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

let clock = 0;

function readClock(times: number): void {
  for (let i = 0; i < times; i++) clock += performance.now();
}

function countsOfSteps() {
  const cells = new Cells();
  const counts = new ModelCounts({ model: "m", version: "1" }, cells);
  const words = Array.from({ length: BATCH }, () => "committed" as const);
  const run: RunTimes = { begunAt: 10, inputMs: 0.2, ranMs: 2, outputMs: 0.1 };
  const settled = words.map(
    () =>
      ({
        outcome: { kind: "result" },
        state: { action: "put", checkpoint: Buffer.alloc(1_024) },
        measured: { run, rows: 1, admittedAt: 5 },
      }) as unknown as Settled,
  );
  return {
    cells,
    batch(): void {
      readClock(READINGS.ofBatch);
      for (let i = 0; i < BATCH; i++) counts.lookedUp("memory");
      counts.batches?.ran(BATCH, 0.2, 2);
      counts.batches?.closed("delay");
      counts.batches?.late(0.05);
      counts.batches?.tookApart(BATCH, 0.1);
      counts.committed(settled, words, 13, 14);
    },
  };
}

function countsOfAnswers() {
  const http = new HttpCounts();
  const model = servedModel("m");
  const ends = endsOf(model);
  const path = "/v2/models/:model/infer";
  const bytes = { bytesIn: 1_000, bytesOut: 1_000 };
  return {
    call(): void {
      countCall(BATCH, 1.5);
      for (let i = 0; i < BATCH; i++) {
        readClock(READINGS.ofAnswer);
        http.open(1);
        countAdmission(model, "admitted");
        ends.waits(1);
        ends.waits(-1);
        http.answered(path, "POST", 200, 3.5, bytes);
        http.open(-1);
      }
    },
  };
}

function countsOfTokens() {
  const cells = new Cells();
  const counts = new StreamCounts({ model: "m", version: "1" }, undefined, cells);
  const figures = new StreamFigures();
  const stream = { held: { admittedAt: 0 }, figures, ranMs: 1 };
  return {
    cells,
    append(i: number): void {
      figures.heard(i);
      counts.appended(stream, { first: i, records: 1, tokens: 1, bytes: 60 }, i);
      counts.iterated({ passes: 1, computed: 1, cacheBytes: 1_000, ranMs: 1 } as Parameters<
        StreamCounts["iterated"]
      >[0]);
    },
  };
}
