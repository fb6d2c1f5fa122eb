/**
 * Streams in closed loop over SSE: each connection asks for its next answer as soon as the last
 * answer has ended.
 */
import { serveJob } from "../support/child.js";
import type { StreamModel } from "../support/models.js";
import { percentiles, type Percentiles } from "../support/statistics.js";
import { eventsOf } from "./events.js";
import { expectedOf, faultOf, readReferences } from "./expected.js";
import { completionRequest, Recorder, type Recording } from "./recorder.js";
import { pacesOf } from "./paces.js";
import { Vocabulary } from "./vocabulary.js";

export interface StreamLoadJob {
  readonly port: number;
  readonly model: StreamModel;
  readonly connections: number;
  readonly references: string;
  /** How many prompts earlier jobs took, so that no prompt comes again too soon. */
  readonly taken: number;
  readonly warmupMs: number;
  readonly measureMs: number;
}

export interface StreamLoadResult {
  readonly tokens: number;
  readonly seconds: number;
  readonly firstTokenMs: Percentiles;
  readonly betweenTokensMs: Percentiles;
  /** Percentiles of the streams' own means. */
  readonly meanBetweenMs: Percentiles;
  /** How many prompts this job and earlier jobs took. */
  readonly taken: number;
  /** How many streams had their answer checked. */
  readonly checked: number;
  readonly wrong: number;
  /** The fault of the first wrong stream. */
  readonly fault?: string;
  /** CPU time of this process during the measurement. */
  readonly cpuMs: number;
}

await serveJob(async (job: StreamLoadJob, measuring, measured): Promise<StreamLoadResult> => {
  const { port, model, connections, warmupMs, measureMs } = job;
  const references = readReferences(job.references);
  const requests = references.map(({ prompt }) => completionRequest(model.name, prompt, model.answerTokens));
  const recorded: { readonly prompt: number; readonly recording: Recording }[] = [];
  let { taken } = job;
  let over = false;

  const drive = async (fail: (error: Error) => void, done: () => void) => {
    let prompt = 0;
    const next = () => {
      prompt = taken++ % requests.length;
      recorder.send(requests[prompt] as Buffer);
    };
    const ended = (recording: Recording) => {
      recorded.push({ prompt, recording });
      if (over) done();
      else next();
    };
    const recorder = await Recorder.open(port, { ended, failed: fail });
    return next;
  };

  const { from, to, cpuMs } = await new Promise<{ from: number; to: number; cpuMs: number }>((resolve, reject) => {
    let open = connections;
    let window: { from: number; to: number; cpuMs: number } | undefined;
    const done = () => {
      if (--open === 0 && window !== undefined) resolve(window);
    };
    const run = async () => {
      const starts = await Promise.all(Array.from({ length: connections }, () => drive(reject, done)));
      for (const start of starts) start();
      await new Promise((next) => setTimeout(next, warmupMs));
      const cpuBefore = process.cpuUsage();
      const from = performance.now();
      measuring();
      await new Promise((next) => setTimeout(next, measureMs));
      over = true;
      const to = performance.now();
      const { user, system } = process.cpuUsage(cpuBefore);
      measured();
      window = { from, to, cpuMs: (user + system) / 1_000 };
    };
    run().catch(reject);
  });

  const vocabulary = Vocabulary.read(model.folder);
  const expected = references.map(({ tokens }) => expectedOf(vocabulary, tokens));
  const faults: string[] = [];
  const streams = recorded.map(({ prompt, recording }) => {
    const answered = eventsOf(recording.arrivals);
    const wanted = expected[prompt];
    const fault = wanted === undefined ? "no answer is known" : faultOf(answered, wanted);
    if (fault !== undefined) faults.push(fault);
    return { sentAt: recording.sentAt, events: answered.events };
  });
  const { tokens, firstMs, betweenMs, meanMs } = pacesOf(streams, from, to);
  return {
    tokens,
    seconds: (to - from) / 1_000,
    firstTokenMs: percentiles(firstMs),
    betweenTokensMs: percentiles(betweenMs),
    meanBetweenMs: percentiles(meanMs),
    taken,
    checked: recorded.length,
    wrong: faults.length,
    ...(faults[0] !== undefined && { fault: faults[0] }),
    cpuMs,
  };
});
