/**
 * Sequences in closed loop over HTTP: each sends its next step as soon as it has the last answer.
 */
import { AnswerCheck } from "../support/answers.js";
import { serveJob } from "../support/child.js";
import type { BenchModel } from "../support/models.js";
import { outputAt, PATTERNS, readFloats, STEPS } from "../support/patterns.js";
import { percentiles, type Percentiles } from "../support/statistics.js";
import { Connection, type Answer } from "./connection.js";
import { requestsOf } from "./requests.js";

export interface LoadJob {
  readonly port: number;
  readonly model: BenchModel;
  /** How many sequences run, each on a connection of its own. */
  readonly sequences: number;
  readonly expected: string;
  readonly warmupMs: number;
  readonly measureMs: number;
}

export interface LoadResult {
  readonly steps: number;
  readonly seconds: number;
  readonly latencyMs: Percentiles;
  /** The longest that a step took, in milliseconds. */
  readonly longestMs: number;
  readonly checked: number;
  readonly wrong: number;
  /** CPU time of this process during the measurement. */
  readonly cpuMs: number;
}

await serveJob(({ port, model, sequences, expected, warmupMs, measureMs }: LoadJob, measuring, measured) => {
  const check = new AnswerCheck(readFloats(expected), model.size);
  const latencies: number[] = [];
  let open = 0;
  let phase: "warm-up" | "measure" | "over" = "warm-up";

  const drive = async (sequence: number, fail: (error: Error) => void, over: () => void) => {
    const requests = requestsOf(model, sequence);
    let step = 0;
    let sentAt = 0;
    const send = () => {
      sentAt = performance.now();
      connection.send(requests[step] as Buffer);
    };
    const onAnswer = ({ status, body, tensorsAt }: Answer) => {
      if (status !== 200) return fail(new Error(`the gateway answered ${status}: ${body.toString("utf8", 0, 500)}`));
      if (phase === "measure") latencies.push(performance.now() - sentAt);
      check.check((i) => body.readFloatLE(tensorsAt + i * 4), outputAt(sequence % PATTERNS, step, model.size));
      step = (step + 1) % STEPS;
      if (phase === "over") over();
      else send();
    };
    const connection = await Connection.open(port, onAnswer, fail);
    return send;
  };

  return new Promise<LoadResult>((resolve, reject) => {
    let result: Omit<LoadResult, "checked" | "wrong"> | undefined;
    const over = () => {
      if (--open === 0 && result !== undefined) resolve({ ...result, checked: check.checked, wrong: check.wrong });
    };
    const run = async () => {
      const starts = await Promise.all(Array.from({ length: sequences }, (_, i) => drive(i, reject, over)));
      open = starts.length;
      for (const start of starts) start();
      await new Promise((next) => setTimeout(next, warmupMs));
      const cpuBefore = process.cpuUsage();
      const startedAt = performance.now();
      phase = "measure";
      measuring();
      await new Promise((next) => setTimeout(next, measureMs));
      phase = "over";
      const seconds = (performance.now() - startedAt) / 1_000;
      const { user, system } = process.cpuUsage(cpuBefore);
      measured();
      result = {
        steps: latencies.length,
        seconds,
        latencyMs: percentiles(latencies),
        longestMs: latencies.reduce((longest, one) => Math.max(longest, one), 0),
        cpuMs: (user + system) / 1_000,
      };
    };
    run().catch(reject);
  });
});
