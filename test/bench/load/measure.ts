/**
 * Sequences over HTTP. In a closed loop each sends its next step as soon as it has the last answer.
 * In an open loop steps are due at random times whose rate is given, whatever the answers do, and
 * the latency of a step counts from the time when it was due: a slow answer also delays the steps
 * behind it (coordinated omission).
 */
import { seededRandom } from "../../support/fleet/random.js";
import { AnswerCheck } from "../support/answers.js";
import { serveJob } from "../support/child.js";
import type { BenchModel } from "../support/models.js";
import { outputAt, PATTERNS, readFloats, STEPS } from "../support/patterns.js";
import { percentiles, type Percentiles } from "../support/statistics.js";
import { Connection, type Answer } from "./connection.js";
import { GrpcConnection, grpcRequestsOf, type Way } from "./grpc-connection.js";
import { requestsOf } from "./requests.js";

export interface LoadJob {
  readonly port: number;
  /** The port is gRPC's, and steps go in this way; absent: HTTP. */
  readonly grpc?: Way;
  readonly model: BenchModel;
  /** How many sequences run, each on a connection of its own. */
  readonly sequences: number;
  readonly expected: string;
  readonly warmupMs: number;
  readonly measureMs: number;
  /** Steps a second of an open loop; absent: a closed loop. */
  readonly offered?: number;
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
  /** How late this process itself sent steps of an open loop, in milliseconds. */
  readonly lateMs: Percentiles;
}

/** Longest time without a step, in ms. A gateway closes a connection that is idle for 5 s. */
const LONGEST_WAIT_MS = 3_000;

await serveJob((job: LoadJob, measuring, measured) => {
  const { port, grpc, model, sequences, expected, warmupMs, measureMs, offered } = job;
  const check = new AnswerCheck(readFloats(expected), model.size);
  const latencies: number[] = [];
  const late: number[] = [];
  let open = 0;
  let phase: "warm-up" | "measure" | "over" = "warm-up";

  const drive = async (sequence: number, fail: (error: Error) => void, over: () => void) => {
    const requests = grpc === undefined ? requestsOf(model, sequence) : grpcRequestsOf(model, sequence);
    const waits = offered === undefined ? undefined : exponential(sequence, (sequences * 1_000) / offered);
    let step = 0;
    /** When the step was due, which in a closed loop is when it was sent. */
    let dueAt = performance.now();
    const send = () => {
      if (waits === undefined) dueAt = performance.now();
      connection.send(requests[step] as Buffer);
    };
    const sendWhenDue = () => {
      if (waits === undefined) return send();
      dueAt += waits();
      const inMs = dueAt - performance.now();
      if (inMs <= 0) return send();
      setTimeout(() => {
        if (phase === "over") return over();
        if (phase === "measure") late.push(performance.now() - dueAt);
        send();
      }, inMs);
    };
    const onAnswer = ({ status, body, tensorsAt }: Answer) => {
      if (status !== 200) return fail(new Error(`the gateway answered ${status}: ${body.toString("utf8", 0, 500)}`));
      if (phase === "measure") latencies.push(performance.now() - dueAt);
      check.check((i) => body.readFloatLE(tensorsAt + i * 4), outputAt(sequence % PATTERNS, step, model.size));
      step = (step + 1) % STEPS;
      if (phase === "over") over();
      else sendWhenDue();
    };
    const connection =
      grpc === undefined
        ? await Connection.open(port, onAnswer, fail)
        : new GrpcConnection({ port, way: grpc, tensorBytes: model.size * 4 }, onAnswer, fail);
    return sendWhenDue;
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
        lateMs: percentiles(late),
      };
    };
    run().catch(reject);
  });
});

/** Draws the times between events that come at random with a mean time between two, in ms. */
function exponential(seed: number, meanMs: number): () => number {
  const random = seededRandom(seed);
  return () => Math.min(LONGEST_WAIT_MS, -Math.log(1 - random.unit()) * meanMs);
}
