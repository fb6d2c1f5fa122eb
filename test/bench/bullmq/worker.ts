/**
 * The common way, for comparison: a BullMQ job per inference, which reads the sequence's state from
 * Redis and writes the state back.
 */
import { Worker } from "bullmq";
import { Redis } from "ioredis";
import { floats, floatsOf, openSession, outputNames } from "../bare/session.js";
import { modelFile } from "../support/models.js";
import { floatsToText, type BullWorkerJob, type StepData, type StepResult } from "./job.js";

/**
 * Jobs at a time, so that Redis can serve the next states while the model runs. Tried: 1 gave 215
 * steps/s, 8 gave 405, 32 gave 500.
 */
const CONCURRENCY = 32;

const { redisPort, queue, model } = JSON.parse(process.argv[2] ?? "") as BullWorkerJob;
const { size } = model;
const session = await openSession(modelFile(model));
const redis = new Redis(redisPort, "127.0.0.1");

function fromBytes(bytes: Buffer): Float32Array {
  return new Float32Array(Uint8Array.from(bytes).buffer);
}

async function step({ sequence, start, x }: StepData): Promise<StepResult> {
  const key = `state:${sequence}`;
  const kept = start ? null : await redis.getBuffer(key);
  const state = kept === null ? new Float32Array(2 * size) : fromBytes(kept);
  const shape = [1, size];
  const feeds = {
    X: floats(fromBytes(Buffer.from(x, "base64")), shape),
    H: floats(state.subarray(0, size), shape),
    C: floats(state.subarray(size), shape),
  };
  const ran = await session.run(feeds, [...outputNames]);
  const next = new Float32Array(2 * size);
  next.set(floatsOf(ran["H_OUT"]));
  next.set(floatsOf(ran["C_OUT"]), size);
  await redis.set(key, Buffer.from(next.buffer));
  return { y: floatsToText(floatsOf(ran["Y"])) };
}

process.once("disconnect", () => process.exit(0));
const worker = new Worker<StepData, StepResult>(queue, (job) => step(job.data), {
  connection: { port: redisPort, host: "127.0.0.1", maxRetriesPerRequest: null },
  concurrency: CONCURRENCY,
});
await worker.waitUntilReady();
process.send?.("ready");
