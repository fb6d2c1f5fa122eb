/**
 * What tracing takes for a step, over gateway and worker, in loops over the functions that decide,
 * note and send. The runs of whole fleets differ from each other by more than a step's share of
 * this. The receiver is a process of its own, so its time does not count.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { FrameMeta } from "#shared/frame.js";
import { Cells } from "#shared/metrics/cells.js";
import { droppedSpans } from "#shared/metrics/process.js";
import { openTracer, type OpenTracer } from "#shared/trace/open.js";
import { AdmitSpan } from "../../../gateway/trace/admit-span.js";
import { TraceRates } from "../../../gateway/trace/rates.js";
import { FrontDoor } from "../../../gateway/http/traces/front-door.js";
import type { TracedStep } from "../../../worker/trace/step-trace.js";
import { StepTraces } from "../../../worker/trace/step-traces.js";
import { delivery } from "../../fixtures/deliveries.js";
import { pause } from "../queue/window.js";
import { servedModel } from "../../fixtures/served-models.js";

export interface TracingCost {
  /** More µs of CPU for a step than without tracing: with none sampled, one of 100, and all. */
  readonly noneUs: number;
  readonly someUs: number;
  readonly allUs: number;
  readonly checked: number;
  readonly wrong: number;
}

/** Steps of a batch, as under 64 connections. */
const BATCH = 16;
const BATCHES = { none: 20_000, some: 20_000, all: 1_000 };
/** After so many sampled steps the exporter has some ms to send them, as it has in a process. */
const SAMPLED_AT_ONCE = 24;
const PAUSE_MS = 20;

const headers = {
  host: "gateway:8000",
  "content-type": "application/octet-stream",
  "inference-header-content-length": "220",
  "content-length": "732",
};
const address = { bucket: 0, model: "m", tenant: "default", request: "r1" };
const outcome = { kind: "result", body: Buffer.alloc(0) } as const;
const committed = Array.from({ length: BATCH }, () => "committed");
const state = Promise.resolve({ kind: "found", place: "memory", tensors: [] } as const);

export async function measureTracing(): Promise<TracingCost> {
  const receiver = fork(fileURLToPath(new URL("./receiver.js", import.meta.url)), { serialization: "json" });
  try {
    const [url] = (await once(receiver, "message")) as [string];
    const plainUs = plain();
    const [none, some, all] = [
      await measure(url, 0, BATCHES.none),
      await measure(url, 0.01, BATCHES.some),
      await measure(url, 1, BATCHES.all),
    ];
    const runs = [none, some, all];
    return {
      noneUs: none.us - plainUs,
      someUs: some.us - plainUs,
      allUs: all.us - plainUs,
      checked: runs.length,
      wrong: runs.filter(({ isRight }) => !isRight).length,
    };
  } finally {
    receiver.kill();
  }
}

/** The steps' own objects, which are there without tracing, too. */
function plain(): number {
  let us = 0;
  for (let i = 0; i < 2; i++) {
    const before = process.cpuUsage();
    let settled = 0;
    for (let n = 0; n < BATCHES.none; n++) {
      const steps = asSteps(Array.from({ length: BATCH }, () => untraced));
      settled += settledOf(steps).length;
    }
    const { user, system } = process.cpuUsage(before);
    us = (user + system) / settled;
  }
  return us;
}

let entries = 0;
const untraced = { meta: {}, answer: () => undefined };

function asSteps(asked: readonly { readonly meta: FrameMeta }[]): TracedStep[] {
  return asked.map(({ meta }) => ({
    delivery: delivery(`1-${entries++}`),
    request: { meta },
    admittedAt: 5,
    rows: 1,
    state,
  }));
}

function settledOf(steps: readonly TracedStep[]) {
  return steps.map((one) => ({ delivery: one.delivery, outcome }));
}

/** The first run is for the compiler. The last one counts until the receiver has all spans. */
async function measure(url: string, rate: number, batches: number): Promise<{ us: number; isRight: boolean }> {
  const warm = await open(url, rate);
  await warm.run(batches / 10);
  await warm.tracer.close();
  const opened = await open(url, rate);
  const before = process.cpuUsage();
  const sampled = await opened.run(batches);
  await opened.tracer.close();
  const { user, system } = process.cpuUsage(before);
  const share = sampled / (batches * BATCH);
  const isRight = opened.dropped() === 0 && Math.abs(share - rate) <= rate * 0.2;
  return { us: (user + system) / (batches * BATCH), isRight };
}

async function open(url: string, rate: number) {
  const cells = new Cells();
  const tracer = await openTracer(settings(url, rate), {
    role: "gateway",
    process: "bench",
    log: () => undefined,
    onDropped: droppedSpans(cells),
  });
  if (tracer === undefined) throw new Error("there is no tracer");
  const step = stepsOf(tracer, rate);
  return {
    tracer,
    dropped: () => Number(/^baton_spans_dropped_total (\d+)$/m.exec(cells.page())?.[1]),
    /** @returns how many steps were sampled */
    async run(batches: number): Promise<number> {
      let sampled = 0;
      let waiting = 0;
      for (let i = 0; i < batches; i++) {
        const now = step.batch();
        sampled += now;
        waiting += now;
        if (waiting < SAMPLED_AT_ONCE) continue;
        waiting = 0;
        await pause(PAUSE_MS);
      }
      return sampled;
    },
  };
}

function settings(url: string, rate: number): Parameters<typeof openTracer>[0] {
  return {
    BATON_TRACE_URL: url,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: undefined,
    OTEL_EXPORTER_OTLP_ENDPOINT: undefined,
    BATON_TRACE_HEADERS_FILE: undefined,
    BATON_TRACE_HEADERS: undefined,
    BATON_TRACE_SAMPLE: rate,
  };
}

/** The work of both processes on a batch of steps, in the order of a step's way. */
function stepsOf(tracer: OpenTracer, rate: number) {
  const frontDoor = new FrontDoor(tracer, new TraceRates(true, rate));
  const worker = new StepTraces({ tracer, worker: "w.1", model: "m", version: "1", provider: "cpu" });
  const model = servedModel("m");
  const path = "/v2/models/:model/infer";
  const ask = () => {
    const startAt = performance.now();
    const trace = frontDoor.begin({
      method: "POST",
      headers,
      path,
      httpVersion: "1.1",
      protocol: "kserve",
      model: "m",
      startAt,
    });
    if (trace === undefined) return untraced;
    const admit = new AdmitSpan(trace);
    admit.called(BATCH);
    const request = { model, sequence: undefined };
    const meta = admit.meta(request);
    admit.heard("admitted");
    admit.end(request, address);
    return { meta, answer: () => trace.end(200) };
  };
  return {
    /** @returns how many of its steps were sampled */
    batch(): number {
      const asked = Array.from({ length: BATCH }, ask);
      const steps = asSteps(asked);
      const trace = worker.beginBatch(steps, "delay");
      trace?.posted();
      trace?.ran({ ranMs: 2, runs: 1 });
      worker.committing(settledOf(steps))?.(committed);
      for (const { answer } of asked) answer();
      return asked.reduce((count, { meta }) => count + ("trace" in meta ? 1 : 0), 0);
    },
  };
}
