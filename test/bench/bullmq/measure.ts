/**
 * Sequences in closed loop through BullMQ: each adds a job, waits for its result and adds the next.
 */
import { fork } from "node:child_process";
import { Queue, QueueEvents } from "bullmq";
import { AnswerCheck } from "../support/answers.js";
import { serveJob } from "../support/child.js";
import type { BenchModel } from "../support/models.js";
import { outputAt, PATTERNS, readFloats, STEPS, vectorAt, vectors } from "../support/patterns.js";
import { percentiles, type Percentiles } from "../support/statistics.js";
import { floatsToText, type BullWorkerJob, type StepData, type StepResult } from "./job.js";

export interface BullJob {
  readonly redisPort: number;
  readonly model: BenchModel;
  readonly sequences: number;
  readonly expected: string;
  readonly warmupMs: number;
  readonly measureMs: number;
}

export interface BullResult {
  readonly stepsPerSecond: number;
  readonly latencyMs: Percentiles;
  readonly checked: number;
  readonly wrong: number;
}

/**
 * How many records of jobs Redis keeps. Without kept records, a late waiter would not find its job.
 */
const KEPT_JOBS = 1_000;

await serveJob(async (job: BullJob, measuring): Promise<BullResult> => {
  const { redisPort, model, sequences, warmupMs, measureMs } = job;
  const name = `steps-${process.pid}`; // leftovers of an earlier round do not disturb this round
  await startWorker({ redisPort, model, queue: name });
  const connection = { port: redisPort, host: "127.0.0.1" };
  const queue = new Queue<StepData, StepResult>(name, { connection });
  const events = new QueueEvents(name, { connection });
  await events.waitUntilReady();
  for (const emitter of [queue, events]) emitter.setMaxListeners(0); // every waiter listens to both
  const inputs = vectors(model.size).map(floatsToText);
  const check = new AnswerCheck(readFloats(job.expected), model.size);
  let latencies: number[] = [];
  const closing = new AbortController();

  const drive = async (sequence: number) => {
    const pattern = sequence % PATTERNS;
    for (let step = 0; !closing.signal.aborted; step = (step + 1) % STEPS) {
      const sentAt = performance.now();
      const data = { sequence, start: step === 0, x: inputs[vectorAt(pattern, step)] as string };
      const added = await queue.add("step", data, { removeOnComplete: KEPT_JOBS });
      const result = Buffer.from((await added.waitUntilFinished(events)).y, "base64");
      latencies.push(performance.now() - sentAt);
      check.check((i) => result.readFloatLE(i * 4), outputAt(pattern, step, model.size));
    }
  };

  const drivers = Promise.all(Array.from({ length: sequences }, (_, i) => drive(i)));
  await Promise.race([drivers, new Promise((next) => setTimeout(next, warmupMs))]);
  latencies = [];
  const startedAt = performance.now();
  measuring();
  await Promise.race([drivers, new Promise((next) => setTimeout(next, measureMs))]);
  const seconds = (performance.now() - startedAt) / 1_000;
  // Does not wait for the last steps, because now and then a waiter misses its event and would wait
  // for ever.
  closing.abort();
  const { checked, wrong } = check;
  return { stepsPerSecond: latencies.length / seconds, latencyMs: percentiles(latencies), checked, wrong };
});

/** Starts the BullMQ worker, which ends with this process. */
function startWorker(job: BullWorkerJob): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = fork(new URL("./worker.js", import.meta.url), [JSON.stringify(job)]);
    worker.once("message", () => resolve());
    worker.once("exit", (code) => reject(new Error(`the BullMQ worker exited with ${code}`)));
  });
}
